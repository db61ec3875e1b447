"""Loss scaling for float16 that is right under several replicas and on both engines."""

import threading
from collections.abc import Sequence
from typing import Any, Optional, Union

import keras

from hortus.engine import keras_private


@keras.saving.register_keras_serializable(package="Hortus")
class LossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """Keras' LossScaleOptimizer with the methods that custom steps know from TensorFlow 2.

    A step that scales and unscales itself is right as well as one that leaves it to the engine:

        scaled = optimizer.get_scaled_loss(loss)
        grads = optimizer.get_unscaled_gradients(tape.gradient(scaled, variables))
        optimizer.apply_gradients(zip(grads, variables))
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        # Replicas are traced by threads of their own that take turns: each has its own mark.
        self._unscaled = _ThreadMarks()

    def get_scaled_loss(self, loss: Any) -> Any:
        """The loss to differentiate."""
        return self.scale_loss(loss)

    def get_unscaled_gradients(self, grads: Sequence[Any]) -> list[Any]:
        """The gradients of the true loss. The next `apply_gradients` takes them as such."""
        self._unscaled.set()
        return [None if grad is None else grad / self.dynamic_scale for grad in grads]

    def apply(self, grads: Sequence[Any], trainable_variables: Optional[Sequence] = None) -> None:
        if self._unscaled.take():
            # Scaled once more, exactly as the scale is a power of two: one way through Keras' code.
            grads = [None if grad is None else grad * self.dynamic_scale for grad in grads]
        scope = keras_private.stateless_scope()
        if keras.backend.backend() == "tensorflow" or scope is None:
            super().apply(grads, trainable_variables)
            return
        # Inside a functional step the stateful branches would leak tracers out of `cond`.
        trained = list(trainable_variables or self._trainable_variables)
        own = self.variables
        new_trained, new_own = self.stateless_apply(
            [v.value for v in own], list(grads), [v.value for v in trained]
        )
        for variable, value in zip(trained + own, [*new_trained, *new_own], strict=True):
            scope.add_update((variable, value))


class _ThreadMarks:
    """A flag per thread."""

    def __init__(self) -> None:
        self._threads: set[int] = set()

    def set(self) -> None:
        self._threads.add(threading.get_ident())

    def take(self) -> bool:
        """Whether this thread's flag was set; it no longer is."""
        was_set = threading.get_ident() in self._threads
        self._threads.discard(threading.get_ident())
        return was_set


def scale_losses(
    optimizer: keras.optimizers.Optimizer, loss_scale: Optional[Union[str, float]]
) -> keras.optimizers.Optimizer:
    """The optimizer for float16 training: `dynamic` (or None) or a fixed factor."""
    if loss_scale is None or loss_scale == "dynamic":
        return LossScaleOptimizer(optimizer)
    optimizer.loss_scale_factor = float(loss_scale)
    return optimizer


def innermost(optimizer: Any) -> Any:
    """The optimizer inside all wrappers."""
    while hasattr(optimizer, "inner_optimizer"):
        optimizer = optimizer.inner_optimizer
    return optimizer
