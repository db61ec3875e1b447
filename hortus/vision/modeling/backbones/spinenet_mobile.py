"""Mobile SpineNet (Du et al. 2020): SpineNet of inverted bottleneck blocks."""

import dataclasses
from typing import Any

import keras

from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones.backbone import IMAGES, image_input
from hortus.vision.modeling.backbones.builder import builder_of
from hortus.vision.modeling.backbones.scale_permuted import Node, ScalePermutedBackbone
from hortus.vision.modeling.layers.blocks.inverted_bottleneck import InvertedBottleneckBlock
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.layers.resampling.scale_resampling import DepthwiseScaleResampling


@dataclasses.dataclass(frozen=True)
class Size:
    """How a Mobile SpineNet is scaled."""

    filter_scale: float
    """Factor on the filters of all blocks."""
    endpoint_filters: int
    """Filters of the features of each level."""


SIZES = {
    "49XS": Size(filter_scale=0.6, endpoint_filters=24),
    "49S": Size(filter_scale=0.65, endpoint_filters=40),
    "49": Size(filter_scale=1.0, endpoint_filters=48),
}

_STEM_FILTERS = 8
_FILTERS = {1: 16, 2: 24, 3: 40, 4: 80, 5: 112, 6: 112, 7: 112}


@keras.saving.register_keras_serializable(package="Hortus")
class SpineNetMobile(ScalePermutedBackbone):
    """Mobile SpineNet with features of levels `min_level` to `max_level`, all equally wide.

    Args:
        model_id: a key of `SIZES`.
        input_specs: shape of the images, batch first; sides are multiples of 128.
        min_level: finest level, 3 or more.
        max_level: coarsest level, up to 7.
        se_ratio: squeeze-excite width as a share of the block's input, 0 to 1; 0 leaves it out.
        expand_ratio: factor by which a block widens its input, 1 or more.
        stochastic_depth_drop_rate: chance that an example skips the last block in training;
            proportionally less in earlier ones.
        norm_act: makes normalisation and activations.
        kernel_initializer: of all convolutions.
        kernel_regularizer: of all convolutions that are not depthwise, or None.
        bias_regularizer: of the convolutions with a bias, or None.
        **kwargs: of `keras.Model`.
    """

    nodes = (
        Node(1),
        Node(2),
        Node(2, (0, 1)),
        Node(2, (1, 2)),
        Node(4, (1, 2)),
        Node(3, (3, 4)),
        Node(4, (3, 5)),
        Node(6, (4, 6)),
        Node(4, (4, 6)),
        Node(5, (7, 8)),
        Node(7, (7, 9)),
        Node(5, (9, 10)),
        Node(5, (9, 11)),
        Node(4, (6, 11), is_output=True),
        Node(3, (5, 11), is_output=True),
        Node(5, (8, 13), is_output=True),
        Node(7, (6, 15), is_output=True),
        Node(6, (13, 15), is_output=True),
    )

    def __init__(
        self,
        model_id: str = "49",
        input_specs: keras.layers.InputSpec = IMAGES,
        min_level: int = 3,
        max_level: int = 7,
        se_ratio: float = 0.2,
        expand_ratio: int = 6,
        stochastic_depth_drop_rate: float = 0.0,
        norm_act: NormAct | None = None,
        kernel_initializer: Any = "VarianceScaling",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ):
        if model_id not in SIZES:
            raise ValueError(f"Mobile SpineNet size must be one of {list(SIZES)}, got {model_id!r}")
        self.model_id = model_id
        self.input_specs = input_specs
        self.min_level = min_level
        self.max_level = max_level
        self.se_ratio = se_ratio
        self.expand_ratio = expand_ratio
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        self._remember_layer_arguments(
            norm_act, kernel_initializer, kernel_regularizer, bias_regularizer
        )
        self._check_arguments()
        inputs = image_input(input_specs)
        endpoints = self._connect(self._stem(inputs), SIZES[model_id].endpoint_filters)
        self._finish(inputs, endpoints, **kwargs)

    def _stem(self, x: Any) -> list[Any]:
        x = self._conv_norm_act(x, self._scaled(_STEM_FILTERS), 3, 2, name="stem")
        first, second = self.nodes[:2]
        features = self._block(x, first, 0.0, name="stem_block1")
        return [features, self._block(features, second, 0.0, name="stem_block2", strides=2)]

    def _resample(self, x: Any, source: Node, target: Node, name: str) -> Any:
        return DepthwiseScaleResampling(
            self._scaled(_FILTERS[target.level]),
            coarser_by=target.level - source.level,
            name=name,
            **self._layer_arguments(),
        )(x)

    def _block(self, x: Any, node: Node, drop_rate: float, name: str, strides: int = 1) -> Any:
        return InvertedBottleneckBlock(
            x.shape[-1],
            self._scaled(_FILTERS[node.level]),
            self.expand_ratio,
            strides,
            se_ratio=self.se_ratio,
            se_gating_activation="hard_sigmoid",
            stochastic_depth_drop_rate=drop_rate,
            name=name,
            **self._layer_arguments(),
        )(x)

    def _scaled(self, filters: int) -> int:
        return int(filters * SIZES[self.model_id].filter_scale)


build_spinenet_mobile = factory.register_backbone_builder("spinenet_mobile")(
    builder_of(SpineNetMobile)
)
