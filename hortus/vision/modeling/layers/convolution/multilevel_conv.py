"""A convolution that is run on every level of a pyramid."""

from collections.abc import Sequence
from typing import Any

import keras

from hortus.vision.modeling.layers.blocks.block import Shape
from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.modeling.layers.convolution.biased_convolution import convolution


@keras.saving.register_keras_serializable(package="Hortus")
class MultilevelConv(Configurable, keras.layers.Layer):
    """Runs one convolution on all levels, or one for each.

    Args:
        levels: of the pyramid.
        filters: of the output; {level as a string: filters} where they differ, which takes
            convolutions for each level.
        kernel_size: side of the kernels.
        share_levels: the same convolution for all levels.
        separable: depthwise separable instead of full convolutions.
        kernel_initializer: of the kernels.
        kernel_regularizer: of the kernels, or None.
        bias_initializer: of the biases.
        bias_regularizer: of the biases, or None.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(
        self,
        levels: Sequence[int],
        filters: int | dict[str, int],
        kernel_size: int = 3,
        share_levels: bool = True,
        separable: bool = False,
        kernel_initializer: Any = "glorot_uniform",
        kernel_regularizer: Any = None,
        bias_initializer: Any = "zeros",
        bias_regularizer: Any = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if share_levels and isinstance(filters, dict):
            raise ValueError(
                f"levels of different widths cannot share a convolution, got filters {filters}: "
                "set share_levels to False"
            )
        self.levels = list(levels)
        self.filters = filters
        self.kernel_size = kernel_size
        self.share_levels = share_levels
        self.separable = separable
        self.kernel_initializer = kernel_initializer
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_initializer = bias_initializer
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.convs: dict[str, keras.layers.Layer] = {}
        for level in self.levels:
            name = self._name(level)
            if name not in self.convs:
                self.convs[name] = convolution(
                    filters[str(level)] if isinstance(filters, dict) else filters,
                    kernel_size,
                    separable=separable,
                    kernel_initializer=kernel_initializer,
                    kernel_regularizer=self.kernel_regularizer,
                    bias_initializer=bias_initializer,
                    bias_regularizer=self.bias_regularizer,
                    dtype=self.dtype_policy,
                    name=name,
                )

    def _name(self, level: int) -> str:
        return "shared" if self.share_levels else f"level{level}"

    def build(self, input_shape: dict[str, Shape]) -> None:
        for level in self.levels:
            conv = self.convs[self._name(level)]
            if not conv.built:
                conv.build(input_shape[str(level)])

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """{level: (batch, height, width, channels)} to {level: (batch, height, width, filters)}."""
        if training and self.share_levels and not self.separable:
            features = [inputs[str(level)] for level in self.levels]
            outputs = self.convs["shared"].train_together(features)
            return {str(level): y for level, y in zip(self.levels, outputs, strict=True)}
        return {
            str(level): self.convs[self._name(level)](inputs[str(level)]) for level in self.levels
        }

    def compute_output_shape(self, input_shape: dict[str, Shape]) -> dict[str, Shape]:
        return {
            str(level): self.convs[self._name(level)].compute_output_shape(input_shape[str(level)])
            for level in self.levels
        }
