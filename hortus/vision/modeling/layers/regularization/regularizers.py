"""Penalties on weights."""

from typing import Any

import keras

from hortus.engine import kernels


@keras.saving.register_keras_serializable(package="Hortus")
class L2(keras.regularizers.L2):
    """Keras' L2, `l2 * sum(x ** 2)`, in one kernel where the backend has it."""

    def __call__(self, x: Any) -> Any:
        return 2.0 * self.l2 * kernels.half_sum_of_squares(x)
