"""MobileNet V1 to V4; the architectures are in `mobilenet_specs`."""

from typing import Any

import keras

from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones import mobilenet_specs as specs
from hortus.vision.modeling.backbones.backbone import IMAGES, Backbone, image_input
from hortus.vision.modeling.backbones.builder import builder_of
from hortus.vision.modeling.layers.attention.multi_query_attention import MultiQueryAttentionBlock
from hortus.vision.modeling.layers.blocks.inverted_bottleneck import InvertedBottleneckBlock
from hortus.vision.modeling.layers.blocks.universal_inverted_bottleneck import (
    UniversalInvertedBottleneckBlock,
)
from hortus.vision.modeling.layers.convolution.conv_norm_act import ConvNormAct
from hortus.vision.modeling.layers.convolution.depthwise_separable_conv import (
    DepthwiseSeparableConvBlock,
)
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.layers.regularization.stochastic_depth import stochastic_depth_rate
from hortus.vision.modeling.layers.round_filters import round_filters


@keras.saving.register_keras_serializable(package="Hortus")
class MobileNet(Backbone):
    """MobileNet, with features of levels 2 to 5 and one endpoint above them.

    The activations are those of the architecture, whatever `norm_act` says.

    Args:
        model_id: a key of `mobilenet_specs.ARCHITECTURES`.
        input_specs: shape of the images, batch first.
        filter_size_scale: factor on the number of filters (width multiplier). The last layer only
            grows with it.
        output_stride: input pixels per pixel of the coarsest features: 2, 4, 8, 16 or 32. Blocks
            that would stride further dilate instead. None is the architecture's own.
        stochastic_depth_drop_rate: chance that an example skips a block in training.
        flat_stochastic_depth_drop_rate: the same for all blocks; otherwise it grows with depth.
        output_intermediate_endpoints: also return the expanded features of inverted bottleneck
            blocks that are endpoints, as '2/depthwise' and so on.
        regularize_depthwise: regularise depthwise kernels too.
        padding: of strided convolutions: `same`, or `symmetric` for as much on both sides.
        se_gating_activation: from squeeze-excite to the factor of a channel.
        norm_act: makes normalisation.
        kernel_initializer: of all convolutions.
        kernel_regularizer: of all convolutions that are not depthwise, or None.
        bias_regularizer: of the convolutions with a bias, or None.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        model_id: str = "MobileNetV2",
        input_specs: keras.layers.InputSpec = IMAGES,
        filter_size_scale: float = 1.0,
        output_stride: int | None = None,
        stochastic_depth_drop_rate: float = 0.0,
        flat_stochastic_depth_drop_rate: bool = True,
        output_intermediate_endpoints: bool = False,
        regularize_depthwise: bool = False,
        padding: str = "same",
        se_gating_activation: str = "hard_sigmoid",
        norm_act: NormAct | None = None,
        kernel_initializer: Any = "VarianceScaling",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ):
        if model_id not in specs.ARCHITECTURES:
            raise ValueError(f"model_id must be one of {list(specs.ARCHITECTURES)}, got {model_id}")
        if output_stride not in (None, 2, 4, 8, 16, 32):
            raise ValueError(f"output_stride must be 2, 4, 8, 16, 32 or None, got {output_stride}")
        if filter_size_scale <= 0:
            raise ValueError(f"filter_size_scale must be above 0, got {filter_size_scale}")
        self.model_id = model_id
        self.input_specs = input_specs
        self.filter_size_scale = filter_size_scale
        self.output_stride = output_stride
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        self.flat_stochastic_depth_drop_rate = flat_stochastic_depth_drop_rate
        self.output_intermediate_endpoints = output_intermediate_endpoints
        self.regularize_depthwise = regularize_depthwise
        self.padding = padding
        self.se_gating_activation = se_gating_activation
        self._remember_layer_arguments(
            norm_act, kernel_initializer, kernel_regularizer, bias_regularizer
        )
        inputs = image_input(input_specs)
        endpoints = self._connect(inputs)
        levels = list(endpoints)[:-1]  # all but the last one, which is for classification
        self._finish(inputs, endpoints, levels, **kwargs)

    def _connect(self, x: Any) -> dict[str, Any]:
        """Puts the rows of the architecture one after the other; returns the endpoints."""
        rows = specs.ARCHITECTURES[self.model_id].rows
        endpoints: dict[str, Any] = {}
        dilation = _Dilation(self.output_stride)
        next_level, last_level = 2, 99
        if self.output_stride is not None:
            last_level = self.output_stride.bit_length() - 1
        for index, row in enumerate(rows):
            separable = isinstance(row, specs.Separable)
            strides, rate = dilation.take(getattr(row, "strides", 1), late=separable)
            layer = self._layer(row, index, x.shape[-1], strides, rate)
            intermediate = {}
            x = layer(x)
            if isinstance(x, tuple):
                x, intermediate = x
            if row.output:
                level = str(min(next_level, last_level))
                next_level += 1
                endpoints[level] = x
                endpoints |= {f"{level}/{name}": value for name, value in intermediate.items()}
        return {**endpoints, str(min(next_level, last_level + 1)): x}

    def _layer(
        self, row: specs.Row, index: int, in_filters: int, strides: int, dilation_rate: int
    ) -> keras.layers.Layer:
        architecture = specs.ARCHITECTURES[self.model_id]
        common_arguments = self._layer_arguments()
        common_arguments["norm_act"] = self.norm_act.replace(
            activation=row.activation or architecture.activation
        )
        common_arguments["name"] = f"block{index}"
        drop_rate = self.stochastic_depth_drop_rate
        if not self.flat_stochastic_depth_drop_rate:
            drop_rate = stochastic_depth_rate(drop_rate, index + 1, len(architecture.rows))
        match row:
            case specs.Conv():
                return ConvNormAct(
                    self._filters(row, index),
                    row.kernel_size,
                    strides,
                    use_bias=not row.normalized,
                    use_normalization=row.normalized,
                    **common_arguments,
                )
            case specs.Separable():
                return DepthwiseSeparableConvBlock(
                    self._filters(row, index),
                    strides,
                    dilation_rate,
                    regularize_depthwise=self.regularize_depthwise,
                    **common_arguments,
                )
            case specs.Inverted():
                return InvertedBottleneckBlock(
                    in_filters,
                    self._filters(row, index),
                    row.expand_ratio,
                    strides,
                    row.kernel_size,
                    dilation_rate,
                    se_ratio=row.se_ratio,
                    se_gating_activation=self.se_gating_activation,
                    expand_se_in_filters=True,
                    divisible_by=architecture.divisor,
                    use_depthwise=row.use_depthwise,
                    use_residual=row.use_residual,
                    stochastic_depth_drop_rate=drop_rate,
                    regularize_depthwise=self.regularize_depthwise,
                    output_intermediate_endpoints=self.output_intermediate_endpoints,
                    **common_arguments,
                )
            case specs.Universal():
                return UniversalInvertedBottleneckBlock(
                    in_filters,
                    self._filters(row, index),
                    row.expand_ratio,
                    row.start_kernel_size,
                    row.middle_kernel_size,
                    strides,
                    dilation_rate,
                    layer_scale_init_value=architecture.layer_scale,
                    stochastic_depth_drop_rate=drop_rate,
                    regularize_depthwise=self.regularize_depthwise,
                    **common_arguments,
                )
            case specs.Attention():
                return MultiQueryAttentionBlock(
                    row.num_heads,
                    row.key_dim,
                    row.key_dim,
                    row.kv_strides,
                    layer_scale_init_value=architecture.layer_scale,
                    stochastic_depth_drop_rate=drop_rate,
                    **common_arguments,
                )
            case specs.Pool():
                return keras.layers.GlobalAveragePooling2D(
                    keepdims=True, name=common_arguments["name"]
                )

    def _filters(self, row: Any, index: int) -> int:
        architecture = specs.ARCHITECTURES[self.model_id]
        scale = self.filter_size_scale
        if isinstance(row, specs.Conv) and index == len(architecture.rows) - 1:
            scale = max(1.0, scale)  # a slim network still wants rich features at the end
        return round_filters(row.filters, scale, architecture.divisor, minimum=8)


class _Dilation:
    """Turns strides into dilation where the output stride is reached."""

    def __init__(self, output_stride: int | None):
        self._output_stride = output_stride
        self._stride = 1
        self._rate = 1

    def take(self, strides: int, late: bool) -> tuple[int, int]:
        """The strides and dilation rate of the next block, which asks for `strides`.

        A block that would have strided keeps the rate so far, and the next one doubles it. Without
        `late`, the first such block dilates at once.
        """
        if self._stride != self._output_stride:
            self._stride *= strides
            return strides, 1
        rate = strides if self._rate == 1 and not late else self._rate
        self._rate *= strides
        return 1, rate


build_mobilenet = factory.register_backbone_builder("mobilenet")(builder_of(MobileNet))
