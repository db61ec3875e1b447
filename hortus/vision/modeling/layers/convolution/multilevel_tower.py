"""The convolutions of a head that looks at every level of a pyramid."""

from collections.abc import Sequence
from typing import Any

import keras

from hortus.vision.modeling.layers.blocks.block import Block, Shape
from hortus.vision.modeling.layers.convolution.multilevel_conv import (
    MultilevelConv,
)


@keras.saving.register_keras_serializable(package="Hortus")
class MultilevelTower(Block):
    """3x3 convolutions, each normalised and activated.

    Levels share the convolutions, if told so, but never the normalisation, as the statistics of
    their features differ.

    Args:
        levels: of the pyramid.
        num_convs: how many convolutions follow each other.
        filters: of each of them.
        share_levels: the same convolutions for all levels.
        separable: depthwise separable instead of full convolutions.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        levels: Sequence[int],
        num_convs: int,
        filters: int,
        share_levels: bool = True,
        separable: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.levels = list(levels)
        self.num_convs = num_convs
        self.filters = filters
        self.share_levels = share_levels
        self.separable = separable
        self.convs = []
        self.norms = {}
        for index in range(num_convs):
            self.convs.append(
                MultilevelConv(
                    levels,
                    filters,
                    share_levels=share_levels,
                    separable=separable,
                    kernel_initializer=self.kernel_initializer,
                    kernel_regularizer=self.kernel_regularizer,
                    bias_regularizer=self.bias_regularizer,
                    dtype=self.dtype_policy,
                    name=f"conv{index + 1}",
                )
            )
            for level in levels:
                name = _norm_name(index, level)
                self.norms[name] = self._norm(name)

    def build(self, input_shape: dict[str, Shape]) -> None:
        shapes = input_shape
        for index, conv in enumerate(self.convs):
            conv.build(shapes)
            shapes = conv.compute_output_shape(shapes)
            for level in self.levels:
                self.norms[_norm_name(index, level)].build(shapes[str(level)])

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """{level: (batch, height, width, channels)} to {level: (batch, height, width, filters)}."""
        features = {str(level): inputs[str(level)] for level in self.levels}
        for index, conv in enumerate(self.convs):
            features = conv(features)
            for level in self.levels:
                norm = self.norms[_norm_name(index, level)]
                x = norm(features[str(level)], training=training)
                features[str(level)] = self.norm_act.activate(x)
        return features

    def compute_output_shape(self, input_shape: dict[str, Shape]) -> dict[str, Shape]:
        shapes = {str(level): input_shape[str(level)] for level in self.levels}
        for conv in self.convs:
            shapes = conv.compute_output_shape(shapes)
        return shapes


def _norm_name(index: int, level: int) -> str:
    return f"norm{index + 1}_level{level}"
