"""Stochastic depth: whole blocks left out at random in training."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.configurable import Configurable


@keras.saving.register_keras_serializable(package="Hortus")
class StochasticDepth(Configurable, keras.layers.Layer):
    """Zeroes the residual of some examples in training (Huang et al. 2016).

    What is kept is scaled up, so that the expected value stays the same.

    Args:
        rate: chance that an example's residual is dropped, from 0 to less than 1.
        seed: of the random numbers; None for one drawn at random.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"rate must be from 0 to less than 1, got {rate}")
        self.rate = rate
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Drops along the first axis, with `training`."""
        if not training or self.rate == 0.0:
            return inputs
        keep = 1.0 - self.rate
        shape = (ops.shape(inputs)[0],) + (1,) * (len(inputs.shape) - 1)
        draw = keras.random.uniform(shape, dtype="float32", seed=self.seed_generator)
        return inputs * ops.cast(ops.floor(draw + keep) / keep, inputs.dtype)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


def stochastic_depth_rate(last_rate: float, index: int, count: int) -> float:
    """The rate of part `index` of `count`, counted from 1: it grows linearly to `last_rate`."""
    return last_rate * index / count
