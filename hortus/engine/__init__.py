"""The only place that knows the backend: gradients, replicas, compiled loops.

A task needs one function of it:

    def forward():
        outputs = model(features, training=True)
        loss = self.build_losses(outputs, labels, aux_losses=model.losses)
        return loss, outputs

    (loss, outputs), grads = engine.value_and_grad(forward, model.trainable_variables, optimizer)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""

from collections.abc import Callable, Sequence
from typing import Any

from hortus.engine import disk, environment
from hortus.engine.environment import EngineError, select

__all__ = [
    "EngineError",
    "current_strategy",
    "disk",
    "for_strategy",
    "load",
    "make_deterministic",
    "name",
    "select",
    "value_and_grad",
]


def name() -> str:
    """The engine of this process: `tensorflow` or `jax`."""
    import keras

    backend = keras.backend.backend()
    if backend not in environment.ENGINES:
        raise EngineError(f"Keras runs on {backend}; hortus needs KERAS_BACKEND=tensorflow or jax")
    return backend


def load() -> None:
    """Loads what the engine needs, without its chatter; call it after `select`."""
    # On both engines, as tf.data reads the data on both.
    from hortus.engine.tensorflow import loading

    loading.load()


def _backend() -> Any:
    if name() == "jax":
        from hortus.engine.jax import engine
    else:
        from hortus.engine.tensorflow import engine  # type: ignore[no-redef]
    return engine


def value_and_grad(
    fn: Callable[[], Any], variables: Sequence[Any], optimizer: Any | None = None
) -> tuple[Any, list[Any]]:
    """Calls `fn` and differentiates the loss that it returns.

    Args:
        fn: takes nothing, returns the loss, or a tuple whose first part is the loss.
        variables: what to differentiate by.
        optimizer: what will apply the gradients; it may want the loss scaled.

    Returns:
        What `fn` returned, and this replica's share of the gradients, for
        `optimizer.apply_gradients`, which sums over replicas, unscales and clips.
    """
    return _backend().value_and_grad(fn, variables, optimizer)


def current_strategy() -> Any:
    """The strategy whose scope is open, or the one for a single device."""
    if name() == "jax":
        from hortus.engine.jax.strategy import current_strategy as current

        return current()
    from hortus.engine.tensorflow.strategy import current_strategy as current

    return current()


def for_strategy(strategy: Any, eagerly: bool = False, enable_xla: bool = False) -> Any:
    """The engine that runs steps under a strategy.

    Args:
        strategy: from `distribute_utils.get_distribution_strategy` or `current_strategy`.
        eagerly: runs steps uncompiled, to debug them.
        enable_xla: compiles steps with XLA on TensorFlow; JAX always does.
    """
    if name() == "jax":
        from hortus.engine.jax.engine import JaxEngine

        return JaxEngine(strategy, eagerly)
    from hortus.engine.tensorflow.engine import TensorFlowEngine

    return TensorFlowEngine(strategy, eagerly, enable_xla)


def make_deterministic() -> None:
    """Has operations and input pipelines give the same result in every run, for some speed."""
    # On both engines, as tf.data reads the data on both.
    from hortus.engine.tensorflow import devices

    devices.make_deterministic()
    if name() == "jax":
        environment.make_xla_deterministic()
