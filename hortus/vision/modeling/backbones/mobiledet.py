"""MobileDet (Xiong et al. 2020): backbones for detection, one per kind of mobile hardware."""

import dataclasses
from typing import Any, NamedTuple

import keras

from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones.backbone import IMAGES, Backbone, image_input
from hortus.vision.modeling.backbones.builder import builder_of
from hortus.vision.modeling.backbones.mobilenet_specs import Conv, Inverted
from hortus.vision.modeling.layers.blocks.inverted_bottleneck import InvertedBottleneckBlock
from hortus.vision.modeling.layers.convolution.conv_norm_act import ConvNormAct
from hortus.vision.modeling.layers.convolution.tucker_conv import TuckerConvBlock
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.layers.round_filters import make_divisible


class Tucker(NamedTuple):
    """Tucker convolution."""

    kernel_size: int
    strides: int
    input_compression_ratio: float
    output_compression_ratio: float
    filters: int
    use_residual: bool = True


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A network.

    Attributes:
        activation: of all blocks.
        rows: the blocks, from the image on.
        se_ratio: squeeze-excite width of inverted bottlenecks, as a share of the widened input.
    """

    activation: str
    rows: tuple[Conv | Inverted | Tucker, ...]
    se_ratio: float | None = None


ARCHITECTURES = {
    "MobileDetCPU": Architecture(
        activation="hard_swish",
        se_ratio=0.25,
        rows=(
            Conv(3, 2, 16),
            Inverted(3, 1, 1, 8, use_residual=False),
            Inverted(3, 2, 4, 16),
            Inverted(3, 2, 8, 32),
            *[Inverted(3, 1, 4, 32)] * 3,
            Inverted(5, 2, 8, 72),
            Inverted(3, 1, 8, 72),
            Inverted(5, 1, 4, 72),
            Inverted(3, 1, 4, 72),
            Inverted(3, 1, 8, 72, use_residual=False),
            *[Inverted(3, 1, 8, 72)] * 3,
            Inverted(5, 2, 8, 104),
            *[Inverted(5, 1, 4, 104)] * 2,
            Inverted(3, 1, 4, 104),
            Inverted(3, 1, 8, 144, use_residual=False),
        ),
    ),
    "MobileDetDSP": Architecture(
        activation="relu6",
        rows=(
            Conv(3, 2, 32),
            Inverted(3, 1, 1, 24, use_residual=False),
            Inverted(3, 2, 4, 32, use_depthwise=False),
            Inverted(3, 1, 4, 32, use_depthwise=False),
            Inverted(3, 1, 4, 32),
            Tucker(3, 1, 0.25, 0.75, 32),
            Inverted(3, 2, 8, 64, use_depthwise=False),
            Inverted(3, 1, 4, 64),
            *[Inverted(3, 1, 4, 64, use_depthwise=False)] * 2,
            Inverted(3, 2, 8, 120, use_depthwise=False),
            Inverted(3, 1, 4, 120),
            *[Inverted(3, 1, 8, 120)] * 2,
            Inverted(3, 1, 8, 144, use_depthwise=False, use_residual=False),
            *[Inverted(3, 1, 8, 144)] * 3,
            Inverted(3, 2, 4, 160),
            Inverted(3, 1, 4, 160),
            Inverted(3, 1, 4, 160, use_depthwise=False, use_residual=False),
            Tucker(3, 1, 0.75, 0.75, 160),
            Inverted(3, 1, 8, 240, use_residual=False),
        ),
    ),
    "MobileDetEdgeTPU": Architecture(
        activation="relu6",
        rows=(
            Conv(3, 2, 32),
            Tucker(3, 1, 0.25, 0.75, 16, use_residual=False),
            Inverted(3, 2, 8, 16, use_depthwise=False),
            Inverted(3, 1, 4, 16, use_depthwise=False),
            Inverted(3, 1, 8, 16, use_depthwise=False),
            Inverted(3, 1, 4, 16, use_depthwise=False),
            Inverted(5, 2, 8, 40, use_depthwise=False),
            *[Inverted(3, 1, 4, 40, use_depthwise=False)] * 3,
            Inverted(3, 2, 8, 72),
            Inverted(3, 1, 8, 72),
            *[Inverted(3, 1, 4, 72, use_depthwise=False)] * 2,
            Inverted(5, 1, 8, 96, use_residual=False),
            Inverted(5, 1, 8, 96),
            *[Inverted(3, 1, 8, 96)] * 2,
            Inverted(5, 2, 8, 120),
            Inverted(3, 1, 8, 120),
            Inverted(5, 1, 4, 120),
            Inverted(3, 1, 8, 120),
            Inverted(5, 1, 8, 384, use_residual=False),
        ),
    ),
    "MobileDetGPU": Architecture(
        activation="relu6",
        rows=(
            Conv(3, 2, 32),
            Tucker(3, 1, 0.25, 0.25, 16, use_residual=False),
            Inverted(3, 2, 8, 32, use_depthwise=False),
            *[Tucker(3, 1, 0.25, 0.25, 32)] * 3,
            Inverted(3, 2, 8, 64, use_depthwise=False),
            *[Inverted(3, 1, 8, 64, use_depthwise=False)] * 2,
            Inverted(3, 1, 4, 64, use_depthwise=False),
            Inverted(3, 2, 8, 128, use_depthwise=False),
            *[Inverted(3, 1, 4, 128, use_depthwise=False)] * 3,
            Inverted(3, 1, 8, 128, use_depthwise=False, use_residual=False),
            *[Inverted(3, 1, 8, 128, use_depthwise=False)] * 3,
            Inverted(3, 2, 4, 128, use_depthwise=False),
            *[Inverted(3, 1, 4, 128, use_depthwise=False)] * 3,
            Inverted(3, 1, 8, 384, use_residual=False),
        ),
    ),
}


@keras.saving.register_keras_serializable(package="Hortus")
class MobileDet(Backbone):
    """MobileDet, with features of levels 1 to 5.

    The activations are those of the architecture, whatever `norm_act` says.

    Args:
        model_id: a key of `ARCHITECTURES`.
        input_specs: shape of the images, batch first.
        filter_size_scale: factor on the number of filters (width multiplier).
        norm_act: makes normalisation.
        kernel_initializer: of all convolutions.
        kernel_regularizer: of all convolutions that are not depthwise, or None.
        bias_regularizer: of the convolutions with a bias, or None.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        model_id: str = "MobileDetCPU",
        input_specs: keras.layers.InputSpec = IMAGES,
        filter_size_scale: float = 1.0,
        norm_act: NormAct | None = None,
        kernel_initializer: Any = "VarianceScaling",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ):
        if model_id not in ARCHITECTURES:
            raise ValueError(f"model_id must be one of {list(ARCHITECTURES)}, got {model_id!r}")
        if filter_size_scale <= 0:
            raise ValueError(f"filter_size_scale must be above 0, got {filter_size_scale}")
        self.model_id = model_id
        self.input_specs = input_specs
        self.filter_size_scale = filter_size_scale
        self._remember_layer_arguments(
            norm_act, kernel_initializer, kernel_regularizer, bias_regularizer
        )
        inputs = image_input(input_specs)
        self._finish(inputs, self._connect(inputs), **kwargs)

    def _connect(self, x: Any) -> dict[str, Any]:
        """Puts the rows one after the other; the last one of a level is its endpoint."""
        endpoints = {}
        level = 0
        for index, row in enumerate(ARCHITECTURES[self.model_id].rows):
            level += row.strides == 2
            x = self._layer(row, index, x.shape[-1])(x)
            endpoints[str(level)] = x
        return endpoints

    def _layer(
        self, row: Conv | Inverted | Tucker, index: int, in_filters: int
    ) -> keras.layers.Layer:
        architecture = ARCHITECTURES[self.model_id]
        filters = make_divisible(row.filters * self.filter_size_scale, round_down_protect=False)
        arguments = {**self._layer_arguments(), "name": f"block{index}"}
        arguments["norm_act"] = self.norm_act.replace(activation=architecture.activation)
        if isinstance(row, Conv):
            return ConvNormAct(filters, row.kernel_size, row.strides, **arguments)
        if isinstance(row, Tucker):
            return TuckerConvBlock(
                in_filters,
                filters,
                row.input_compression_ratio,
                row.output_compression_ratio,
                row.kernel_size,
                row.strides,
                use_residual=row.use_residual,
                **arguments,
            )
        return InvertedBottleneckBlock(
            in_filters,
            filters,
            row.expand_ratio,
            row.strides,
            row.kernel_size,
            se_ratio=architecture.se_ratio,
            se_inner_activation=architecture.activation,
            se_round_down_protect=False,
            expand_se_in_filters=True,
            divisible_by=8,
            use_depthwise=row.use_depthwise,
            use_residual=row.use_residual,
            **arguments,
        )


build_mobiledet = factory.register_backbone_builder("mobiledet")(builder_of(MobileDet))
