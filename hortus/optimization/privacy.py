"""Differentially private gradients: clipped, then blurred by noise."""

from typing import Any, List, Optional

import keras
from keras import ops

from hortus.optimization.gradient_transformation import GradsAndVars


@keras.saving.register_keras_serializable(package="Hortus")
class PrivateGradients:
    """A gradient transformer: limits the norm of all gradients together, then adds Gaussian noise.

    Args:
        clipping_norm: largest norm of all gradients together.
        noise_multiplier: standard deviation of the noise, in units of `clipping_norm`.
        seed: of the noise; None draws one.
    """

    def __init__(self, clipping_norm: float, noise_multiplier: float, seed: Optional[int] = None):
        self.clipping_norm = clipping_norm
        self.noise_multiplier = noise_multiplier
        self.seed = seed
        self._noise = keras.random.SeedGenerator(seed)

    @property
    def variables(self) -> List[Any]:
        """The state of the noise, which a checkpoint has to hold."""
        return [self._noise.state]

    def __call__(self, grads_and_vars: GradsAndVars) -> GradsAndVars:
        grads = [ops.convert_to_tensor(g) for g, _ in grads_and_vars if g is not None]
        squares = [ops.sum(ops.square(ops.cast(grad, "float32"))) for grad in grads]
        norm = ops.sqrt(sum(squares[1:], squares[0]))
        factor = self.clipping_norm / ops.maximum(norm, self.clipping_norm)
        deviation = self.clipping_norm * self.noise_multiplier
        private = []
        for grad, variable in grads_and_vars:
            if grad is not None:
                grad = ops.convert_to_tensor(grad)
                noise = keras.random.normal(grad.shape, stddev=deviation, seed=self._noise)
                grad = grad * ops.cast(factor, grad.dtype) + ops.cast(noise, grad.dtype)
            private.append((grad, variable))
        return private

    def get_config(self) -> dict:
        """The arguments of the constructor."""
        return {
            "clipping_norm": self.clipping_norm,
            "noise_multiplier": self.noise_multiplier,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict) -> "PrivateGradients":
        """The reverse of `get_config`."""
        return cls(**config)
