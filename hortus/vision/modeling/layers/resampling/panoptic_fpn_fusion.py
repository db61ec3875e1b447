"""The fusion of Panoptic FPN: all levels of a pyramid at the size of the finest."""

from typing import Any

import keras

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.convolution.biased_convolution import convolution
from hortus.vision.modeling.layers.resampling.upsample_like import upsample

_GROUPS = 32


@keras.saving.register_keras_serializable(package="Hortus")
class PanopticFPNFusion(Block):
    """Brings features of several levels to one size and adds them up (Kirillov et al. 2019).

    A level is doubled in size as often as it takes, each time after a 3x3 convolution with group
    normalisation and activation; the finest one has one such convolution.

    Args:
        min_level: finest level; the output has its size.
        max_level: coarsest level.
        filters: of the output, a multiple of 32.
        **kwargs: of `Block`.
    """

    def __init__(self, min_level: int, max_level: int, filters: int, **kwargs: Any):
        super().__init__(**kwargs)
        if filters % _GROUPS:
            raise ValueError(
                f"panoptic FPN fusion normalises in {_GROUPS} groups: the number of filters must "
                f"be a multiple of {_GROUPS}, got {filters}"
            )
        if not min_level <= max_level:
            raise ValueError(f"min_level {min_level} must not exceed max_level {max_level}")
        self.min_level = min_level
        self.max_level = max_level
        self.filters = filters
        self.convs = {}
        self.norms = {}
        for name in (name for level in self._levels() for name in self._steps(level)):
            self.convs[name] = convolution(
                filters,
                3,
                kernel_initializer=self.kernel_initializer,
                kernel_regularizer=self.kernel_regularizer,
                bias_regularizer=self.bias_regularizer,
                dtype=self.dtype_policy,
                name=f"{name}_conv",
            )
            self.norms[name] = keras.layers.GroupNormalization(
                _GROUPS, dtype=self.dtype_policy, name=f"{name}_norm"
            )

    def _levels(self) -> range:
        return range(self.min_level, self.max_level + 1)

    def _steps(self, level: int) -> list[str]:
        """Names of the convolutions of a level, in order."""
        return [f"level{level}_{index + 1}" for index in range(max(1, level - self.min_level))]

    def build(self, input_shape: dict[str, Shape]) -> None:
        for level in self._levels():
            shape = input_shape[str(level)]
            for name in self._steps(level):
                shape = build_chain(shape, self.convs[name], self.norms[name])

    def call(self, inputs: dict[str, Any]) -> Any:
        """{level: (batch, height, width, channels)} to (batch, finest height, width, filters)."""
        outputs = []
        for level in self._levels():
            x = inputs[str(level)]
            for index, name in enumerate(self._steps(level)):
                x = self.norm_act.activate(self.norms[name](self.convs[name](x)))
                if level > self.min_level:
                    x = upsample(x, 2, like=inputs[str(level - index - 1)])
            outputs.append(x)
        return sum(outputs[1:], start=outputs[0])

    def compute_output_shape(self, input_shape: dict[str, Shape]) -> Shape:
        return (*input_shape[str(self.min_level)][:-1], self.filters)
