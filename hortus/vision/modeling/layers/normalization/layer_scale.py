"""LayerScale: a learned factor per channel on a residual."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.configurable import Configurable


@keras.saving.register_keras_serializable(package="Hortus")
class LayerScale(Configurable, keras.layers.Layer):
    """Scales each channel (Touvron et al. 2021).

    Args:
        initial_value: of all factors; small, so that a block starts as the identity.
        rank: axes of the weight, all but the last of length 1; what a checkpoint has.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(self, initial_value: float = 1e-5, rank: int = 1, **kwargs: Any):
        super().__init__(**kwargs)
        self.initial_value = initial_value
        self.rank = rank

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.scale = self.add_weight(
            shape=(1,) * (self.rank - 1) + (input_shape[-1],),
            name="scale",
            initializer=keras.initializers.Constant(self.initial_value),
        )

    def call(self, inputs: Any) -> Any:
        """Multiplies (..., channels)."""
        return inputs * ops.cast(self.scale, inputs.dtype)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape
