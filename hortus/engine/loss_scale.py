"""Loss scaling for float16 that is right under several replicas and on both engines."""

import threading
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from hortus.engine import keras_private


@keras.saving.register_keras_serializable(package="Hortus")
class LossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """Keras' LossScaleOptimizer with the methods that custom steps know from TensorFlow 2.

    A step that scales and unscales itself is right as well as one that leaves it to the engine:

        scaled = optimizer.get_scaled_loss(loss)
        grads = optimizer.get_unscaled_gradients(tape.gradient(scaled, variables))
        optimizer.apply_gradients(zip(grads, variables))

    Args:
        inner_optimizer: the optimizer that updates the weights.
        initial_scale: factor of the loss to begin with.
        dynamic_growth_steps: steps without overflow after which the factor is doubled.
        dynamic: whether the factor follows overflows; False keeps `initial_scale`.
        **kwargs: `name`, as in Keras.
    """

    def __init__(
        self,
        inner_optimizer: Any,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        dynamic: bool = True,
        **kwargs: Any,
    ):
        super().__init__(inner_optimizer, initial_scale, dynamic_growth_steps, **kwargs)
        self.dynamic = dynamic
        # Replicas are traced by threads of their own that take turns: each has its own marks.
        self._scaled, self._unscaled = _ThreadMarks(), _ThreadMarks()

    def scale_loss(self, loss: Any) -> Any:
        self._scaled.set()
        return super().scale_loss(loss)

    def get_scaled_loss(self, loss: Any) -> Any:
        """The loss to differentiate, or a function that returns it."""
        if callable(loss):
            return lambda: self.scale_loss(loss())
        return self.scale_loss(loss)

    def get_unscaled_gradients(self, grads: Sequence[Any]) -> list[Any]:
        """The gradients of the true loss. The next `apply_gradients` takes them as such."""
        self._unscaled.set()
        return [None if grad is None else grad / self.dynamic_scale for grad in grads]

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence | None = None) -> None:
        is_scaled, is_unscaled = self._scaled.take(), self._unscaled.take()
        if not is_scaled:
            raise RuntimeError(
                "float16 training needs the loss scaled before it is differentiated: use "
                "engine.value_and_grad(fn, variables, optimizer), or differentiate "
                "optimizer.get_scaled_loss(loss)"
            )
        if is_unscaled:
            # Scaled once more, exactly for a power of two: one way through Keras' code.
            grads = [None if grad is None else grad * self.dynamic_scale for grad in grads]
        scope = keras_private.stateless_scope()
        if not self.dynamic:
            scale = self.dynamic_scale
            unscaled = [None if grad is None else grad / scale for grad in grads]
            self.inner_optimizer.apply(unscaled, trainable_variables)
        elif keras.backend.backend() == "tensorflow":
            super().apply(grads, trainable_variables)
        elif scope is not None:
            self._apply_functionally(grads, trainable_variables, scope)
        else:
            state = [*(trainable_variables or self._trainable_variables), *self.variables]
            with keras.StatelessScope([(v, v.value) for v in state]) as scope:
                self._apply_functionally(grads, trainable_variables, scope)
            for variable in state:
                variable.assign(keras_private.scope_values(scope)[id(variable)])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "dynamic": self.dynamic}

    def _apply_functionally(self, grads: Sequence[Any], trained: Any, outer: Any) -> None:
        """Inside a functional step the branches of `cond` would leak; values are chosen instead."""
        finite = self.check_finite(grads)
        known = keras_private.scope_values(outer)
        scale = ops.convert_to_tensor(self.dynamic_scale)
        with keras.StatelessScope() as scope:
            mapping = keras_private.scope_values(scope)
            mapping.update(known)
            unscaled = [None if grad is None else grad / scale for grad in grads]
            self.inner_optimizer.apply(unscaled, trained)
        for key, value in mapping.items():
            if value is not known[key]:
                known[key] = ops.where(finite, value, known[key])
        counter = ops.convert_to_tensor(self.step_counter)
        grows = ops.equal(counter, self.dynamic_growth_steps - 1)
        restarts = ops.logical_or(grows, ops.logical_not(finite))
        self.step_counter.assign(ops.where(restarts, 0, counter + 1))
        self.dynamic_scale.assign(scale * ops.where(finite, ops.where(grows, 2.0, 1.0), 0.5))


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
    optimizer: keras.optimizers.Optimizer, loss_scale: str | float | None
) -> keras.optimizers.Optimizer:
    """The optimizer for float16 training: `dynamic` (or None) or a fixed factor."""
    if loss_scale is None or loss_scale == "dynamic":
        return LossScaleOptimizer(optimizer)
    return LossScaleOptimizer(optimizer, initial_scale=float(loss_scale), dynamic=False)
