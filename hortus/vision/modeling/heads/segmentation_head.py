"""The head that classifies pixels."""

from typing import Any

import keras
from keras import ops

from hortus.vision.configs import heads as configs
from hortus.vision.modeling.config_arguments import field_values
from hortus.vision.modeling.heads import factory, initializers
from hortus.vision.modeling.layers import activations
from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.resampling.panoptic_fpn_fusion import PanopticFPNFusion
from hortus.vision.modeling.layers.resampling.resize_like import resize
from hortus.vision.modeling.layers.resampling.upsample_like import upsample

_LOW_LEVEL = ("deeplabv3plus", "deeplabv3plus_sum_to_merge")
FUSIONS = (None, *_LOW_LEVEL, "pyramid_fusion", "panoptic_fpn_fusion")
"""Values of `feature_fusion`."""


@keras.saving.register_keras_serializable(package="Hortus")
class SegmentationHead(Block):
    """Logits of the classes at every pixel.

    Args:
        num_classes: channels of the output.
        level: of the decoder's features that are used, and of the output if nothing enlarges it.
        num_convs: convolutions before the prediction.
        num_filters: of each of them.
        use_depthwise_convolution: a depthwise 3x3 and a 1x1 instead of a 3x3 convolution, both
            normalised and activated.
        prediction_kernel_size: side of the kernel of the last convolution.
        upsample_factor: how often each pixel is repeated, in height and width, before the
            prediction.
        feature_fusion: what joins the decoder's features of `level`: None, nothing;
            `deeplabv3plus`, the backbone's of `low_level`, at whose size the output is then (Chen
            et al. 2018); `deeplabv3plus_sum_to_merge`, those too, but added; `pyramid_fusion`, the
            decoder's of all levels, resized and added; `panoptic_fpn_fusion`, the decoder's from
            `decoder_min_level` to `decoder_max_level` (Kirillov et al. 2019).
        low_level: key of the backbone's features that DeepLab V3+ uses.
        low_level_num_filters: to which they are narrowed.
        decoder_min_level: finest level of `panoptic_fpn_fusion`, equal to `level`.
        decoder_max_level: coarsest level of `panoptic_fpn_fusion`.
        logit_activation: of the output, such as `sigmoid`; None for plain logits.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        num_classes: int,
        level: int | str,
        num_convs: int = 2,
        num_filters: int = 256,
        use_depthwise_convolution: bool = False,
        prediction_kernel_size: int = 1,
        upsample_factor: int = 1,
        feature_fusion: str | None = None,
        low_level: int | str = 2,
        low_level_num_filters: int = 48,
        decoder_min_level: int | str | None = None,
        decoder_max_level: int | str | None = None,
        logit_activation: Any = None,
        **kwargs: Any,
    ):
        super().__init__(**{"kernel_initializer": initializers.SMALL, **kwargs})
        if feature_fusion not in FUSIONS:
            raise ValueError(f"feature_fusion must be one of {FUSIONS}, got {feature_fusion!r}")
        self.num_classes = num_classes
        self.level = level
        self.num_convs = num_convs
        self.num_filters = num_filters
        self.use_depthwise_convolution = use_depthwise_convolution
        self.prediction_kernel_size = prediction_kernel_size
        self.upsample_factor = upsample_factor
        self.feature_fusion = feature_fusion
        self.low_level = low_level
        self.low_level_num_filters = low_level_num_filters
        self.decoder_min_level = decoder_min_level
        self.decoder_max_level = decoder_max_level
        self.logit_activation = logit_activation

        self.low_level_conv = self.low_level_norm = self.fusion = None
        if feature_fusion in _LOW_LEVEL:
            self.low_level_conv = self._conv(low_level_num_filters, 1, name="low_level")
            self.low_level_norm = self._norm("low_level_norm")
        elif feature_fusion == "panoptic_fpn_fusion":
            self.fusion = self._panoptic_fusion()
        self.convs: list[keras.layers.Layer] = []
        self.norms: list[keras.layers.Layer] = []
        for index in range(1, num_convs + 1):
            self._add_convolution(index)
        self.logits = self._conv(num_classes, prediction_kernel_size, name="logits", use_bias=True)

    def _panoptic_fusion(self) -> PanopticFPNFusion:
        lowest, highest = self.decoder_min_level, self.decoder_max_level
        if lowest is None or highest is None:
            raise ValueError(
                "panoptic_fpn_fusion needs decoder_min_level and decoder_max_level, got "
                f"{lowest} and {highest}"
            )
        if int(lowest) != int(self.level):
            raise ValueError(
                "panoptic_fpn_fusion gives features of the finest level that it sees: level must "
                f"equal decoder_min_level ({lowest}), got {self.level}"
            )
        return PanopticFPNFusion(
            int(lowest),
            int(highest),
            self.num_filters,
            norm_act=self.norm_act,
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name="fusion",
        )

    def _add_convolution(self, index: int) -> None:
        kernel_size = 3
        if self.use_depthwise_convolution:
            name = f"depthwise{index}"
            self.convs.append(
                self._depthwise_conv(3, regularizer=self.kernel_regularizer, name=name)
            )
            self.norms.append(self._norm(f"{name}_norm"))
            kernel_size = 1
        self.convs.append(self._conv(self.num_filters, kernel_size, name=f"conv{index}"))
        self.norms.append(self._norm(f"conv{index}_norm"))

    def build(self, input_shape: tuple[Any, Any]) -> None:
        backbone, decoder = input_shape
        if self.low_level_conv is not None:
            low = _pick(backbone, self.low_level, "backbone")
            build_chain(low, self.low_level_conv, self.low_level_norm)
        if self.fusion is not None:
            self.fusion.build(decoder)
        shape = self._fused_shape(backbone, decoder)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            shape = build_chain(shape, conv, norm)
        self.logits.build(shape)

    def call(self, inputs: tuple[Any, Any], training: bool | None = None) -> Any:
        """Classifies pixels.

        Args:
            inputs: the features of the backbone and those of the decoder, each
                {level: (batch, height, width, channels)}, or for the decoder one such map.
            training: normalise by the batch's own statistics.

        Returns:
            (batch, height, width, classes).
        """
        x = self._fuse(*inputs, training)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = self.norm_act.activate(norm(conv(x), training=training))
        if self.upsample_factor > 1:
            x = upsample(x, self.upsample_factor)
        return activations.get(self.logit_activation)(self.logits(x))

    def _fuse(self, backbone: Any, decoder: Any, training: bool | None) -> Any:
        if self.fusion is not None:
            return self.fusion(decoder)
        x = _pick(decoder, self.level, "decoder")
        if self.feature_fusion == "pyramid_fusion" and isinstance(decoder, dict):
            size = ops.shape(x)[1:3]
            maps = [resize(decoder[level], *size) for level in sorted(decoder)]
            return sum(maps[1:], start=maps[0])
        if self.low_level_conv is None or self.low_level_norm is None:
            return x
        low = self.low_level_conv(_pick(backbone, self.low_level, "backbone"))
        low = self.norm_act.activate(self.low_level_norm(low, training=training))
        x = resize(x, *ops.shape(low)[1:3])
        if self.feature_fusion == "deeplabv3plus":
            return ops.concatenate([x, low], axis=-1)
        return x + low

    def _fused_shape(self, backbone: Any, decoder: Any) -> Shape:
        if self.fusion is not None:
            return self.fusion.compute_output_shape(decoder)
        shape = _pick(decoder, self.level, "decoder")
        if self.low_level_conv is None:
            return shape
        low = _pick(backbone, self.low_level, "backbone")
        joined = 0 if self.feature_fusion != "deeplabv3plus" else self.low_level_num_filters
        return (*low[:-1], shape[-1] + joined)

    def compute_output_shape(self, input_shape: tuple[Any, Any]) -> Shape:
        batch, *sides, _ = self._fused_shape(*input_shape)
        return (batch, *(side and side * self.upsample_factor for side in sides), self.num_classes)


def _pick(features: Any, level: int | str, whose: str) -> Any:
    """Features, or a shape, of a level; those of a decoder may be the only ones."""
    if not isinstance(features, dict):
        return features
    if str(level) not in features:
        raise ValueError(
            f"the segmentation head wants level {level} of the {whose}, which has levels "
            f"{', '.join(features)}"
        )
    return features[str(level)]


@factory.register_head(configs.SegmentationHead)
def build_segmentation_head(
    head_config: configs.SegmentationHead,
    model_config: Any,
    norm_act: Any,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
    name: str | None = None,
) -> SegmentationHead:
    """Builds the head from its config."""
    return SegmentationHead(
        num_classes=model_config.num_classes,
        **field_values(head_config),
        norm_act=norm_act,
        kernel_regularizer=l2_regularizer,
        name=name,
    )
