"""The base of our decoders: a functional model from features to features by level."""

from collections.abc import Iterable, Mapping
from typing import Any

import keras

from hortus.vision.modeling.backbones.backbone import FunctionalModel
from hortus.vision.modeling.layers.normalization.norm_act import NormAct

Specs = Mapping[str, tuple[int | None, ...]]
"""Shapes of features, batch first, by level."""


class Decoder(FunctionalModel):
    """Maps a dict of features to another.

    The keys are levels as strings: '3' is 2^3 times smaller than the image. It takes what it needs
    from the features of a backbone and leaves the others. A user's own decoder need not derive from
    this class: any `keras.Model` from features to features with `output_specs` will do.
    """

    input_specs: dict[str, tuple[int | None, ...]]
    norm_act: NormAct
    kernel_initializer: Any
    kernel_regularizer: Any
    bias_regularizer: Any

    @property
    def output_specs(self) -> Any:
        """Shapes of the outputs, batch first, by level; one shape if the output is one map."""
        if isinstance(self.output, dict):
            return {level: tuple(x.shape) for level, x in self.output.items()}
        return tuple(self.output.shape)

    def _remember_common_arguments(
        self,
        input_specs: Specs,
        norm_act: NormAct | None,
        kernel_initializer: Any,
        kernel_regularizer: Any,
        bias_regularizer: Any = None,
    ) -> None:
        self.input_specs = {str(level): tuple(shape) for level, shape in input_specs.items()}
        self.norm_act = norm_act or NormAct()
        self.kernel_initializer = kernel_initializer
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)

    def _inputs(self, levels: Iterable[int]) -> dict[str, Any]:
        """Input tensors for features of some levels, by level."""
        inputs = {}
        for level in map(str, levels):
            if level not in self.input_specs:
                raise ValueError(
                    f"{type(self).__name__} needs features of level {level}; the backbone has "
                    f"levels {', '.join(self.input_specs)}"
                )
            # As the backbone returns them, so that nothing is cast forth and back.
            dtype = keras.config.dtype_policy().compute_dtype
            inputs[level] = keras.Input(self.input_specs[level][1:], name=level, dtype=dtype)
        return inputs

    def call(self, inputs: dict[str, Any], training: bool | None = None, mask: Any = None) -> Any:
        """Maps {level: (batch, height, width, channels)}; levels that are not needed may be in."""
        return super().call(self._needed(inputs), training=training, mask=mask)

    def compute_output_spec(
        self, inputs: dict[str, Any], training: bool | None = None, mask: Any = None
    ) -> Any:
        return super().compute_output_spec(self._needed(inputs), training=training, mask=mask)

    def _needed(self, features: dict[str, Any]) -> dict[str, Any]:
        # Keras warns of more inputs than a functional model has.
        return {level: features[level] for level in self.input}
