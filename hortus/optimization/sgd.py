"""Stochastic gradient descent, with the backend's own kernel for momentum."""

from typing import Any

import keras

from hortus.engine import kernels


@keras.saving.register_keras_serializable(package="Hortus")
class SGD(keras.optimizers.SGD):
    """Keras' SGD, whose update is one operation per variable where there is momentum.

    Keras computes it in six, each of which is a pass over memory unless XLA joins them.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable and its momentum."""
        if self.momentum == 0 or not kernels.momentum_step(
            variable,
            self.momentums[self._get_variable_index(variable)],
            gradient,
            learning_rate,
            momentum=self.momentum,
            nesterov=self.nesterov,
        ):
            super().update_step(gradient, variable, learning_rate)
