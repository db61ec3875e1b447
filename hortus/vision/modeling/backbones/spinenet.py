"""SpineNet (Du et al. 2019): features that go up and down in scale, by a learned plan."""

import dataclasses
from typing import Any

import keras

from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones.backbone import IMAGES, image_input
from hortus.vision.modeling.backbones.builder import builder_of
from hortus.vision.modeling.backbones.scale_permuted import Node, ScalePermutedBackbone
from hortus.vision.modeling.layers.blocks.residual_block import BottleneckBlock, ResidualBlock
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.layers.resampling.scale_resampling import ScaleResampling


@dataclasses.dataclass(frozen=True)
class Size:
    """How a SpineNet is scaled."""

    filter_scale: float = 1.0
    """Factor on the filters of all blocks."""
    resample_alpha: float = 0.5
    """Width of a connection as a share of the width of the block where it begins."""
    endpoint_filters: int = 256
    """Filters of the features of each level."""
    block_repeats: int = 1
    """Blocks in place of each one of the plan."""


SIZES = {
    "49S": Size(filter_scale=0.65, endpoint_filters=128),
    "49": Size(),
    "96": Size(block_repeats=2),
    "143": Size(resample_alpha=1.0, block_repeats=3),
    "143L": Size(filter_scale=1.3, resample_alpha=1.0, block_repeats=3),
    "190": Size(filter_scale=1.3, resample_alpha=1.0, endpoint_filters=512, block_repeats=4),
}

_FILTERS = {2: 64, 3: 128, 4: 256, 5: 256, 6: 256, 7: 256}


@keras.saving.register_keras_serializable(package="Hortus")
class SpineNet(ScalePermutedBackbone):
    """SpineNet with features of levels `min_level` to `max_level`, all equally wide.

    Args:
        model_id: a key of `SIZES`.
        input_specs: shape of the images, batch first; sides are multiples of 128.
        min_level: finest level, 2 or more.
        max_level: coarsest level, up to 7.
        stochastic_depth_drop_rate: chance that an example skips the last block in training;
            proportionally less in earlier ones.
        norm_act: makes normalisation and activations.
        kernel_initializer: of all convolutions.
        kernel_regularizer: of all convolutions, or None.
        bias_regularizer: kept for symmetry; no convolution has a bias.
        **kwargs: of `keras.Model`.
    """

    nodes = (
        Node(2),
        Node(2),
        Node(2, (0, 1)),
        Node(4, (0, 1), is_bottleneck=False),
        Node(3, (2, 3)),
        Node(4, (2, 4)),
        Node(6, (3, 5), is_bottleneck=False),
        Node(4, (3, 5)),
        Node(5, (6, 7), is_bottleneck=False),
        Node(7, (6, 8), is_bottleneck=False),
        Node(5, (8, 9)),
        Node(5, (8, 10)),
        Node(4, (5, 10), is_output=True),
        Node(3, (4, 10), is_output=True),
        Node(5, (7, 12), is_output=True),
        Node(7, (5, 14), is_output=True),
        Node(6, (12, 14), is_output=True),
        Node(2, (2, 13), is_output=True),
    )

    def __init__(
        self,
        model_id: str = "49",
        input_specs: keras.layers.InputSpec = IMAGES,
        min_level: int = 3,
        max_level: int = 7,
        stochastic_depth_drop_rate: float = 0.0,
        norm_act: NormAct | None = None,
        kernel_initializer: Any = "VarianceScaling",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ):
        if model_id not in SIZES:
            raise ValueError(f"SpineNet size must be one of {list(SIZES)}, got {model_id!r}")
        self.model_id = model_id
        self.input_specs = input_specs
        self.min_level = min_level
        self.max_level = max_level
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        self._remember_layer_arguments(
            norm_act, kernel_initializer, kernel_regularizer, bias_regularizer
        )
        self._check_arguments()
        inputs = image_input(input_specs)
        endpoints = self._connect(self._stem(inputs), SIZES[model_id].endpoint_filters)
        self._finish(inputs, endpoints, **kwargs)

    def _stem(self, x: Any) -> list[Any]:
        x = self._conv_norm_act(x, 64, 7, 2, name="stem")
        x = keras.layers.MaxPooling2D(3, strides=2, padding="same", name="stem_pool")(x)
        first, second = self.nodes[:2]
        features = self._block(x, first, 0.0, name="stem_block1", use_projection=True)
        return [features, self._block(features, second, 0.0, name="stem_block2")]

    def _resample(self, x: Any, source: Node, target: Node, name: str) -> Any:
        return ScaleResampling(
            self._filters(target) * _block_class(target).expansion,
            int(self._filters(source) * SIZES[self.model_id].resample_alpha),
            coarser_by=target.level - source.level,
            name=name,
            **self._layer_arguments(),
        )(x)

    def _block(
        self, x: Any, node: Node, drop_rate: float, name: str, use_projection: bool = False
    ) -> Any:
        repeats = SIZES[self.model_id].block_repeats
        for index in range(repeats):
            x = _block_class(node)(
                self._filters(node),
                use_projection=use_projection and index == 0,
                stochastic_depth_drop_rate=drop_rate,
                name=name if repeats == 1 else f"{name}_{index + 1}",
                **self._layer_arguments(),
            )(x)
        return x

    def _filters(self, node: Node) -> int:
        return int(_FILTERS[node.level] * SIZES[self.model_id].filter_scale)


def _block_class(node: Node) -> type[BottleneckBlock] | type[ResidualBlock]:
    return BottleneckBlock if node.is_bottleneck else ResidualBlock


build_spinenet = factory.register_backbone_builder("spinenet")(builder_of(SpineNet))
