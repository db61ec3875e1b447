"""Every private hook of Keras that hortus relies on, in one place, each with a contract test."""

from typing import Any

import keras

from hortus.engine.innermost import innermost


def leave_reduction_to_caller(optimizer: Any) -> None:
    """Stops a TensorFlow optimizer from summing gradients over replicas in `apply`.

    Keras clips before it sums, so under several replicas each clips its own part. hortus sums
    first and hands over the result.
    """
    if not hasattr(optimizer, "_all_reduce_sum_gradients"):
        raise AttributeError("this Keras has no Optimizer._all_reduce_sum_gradients to replace")
    optimizer._all_reduce_sum_gradients = list


def stateless_scope() -> Any:
    """The StatelessScope that is open now, or None."""
    from keras.src.backend.common.stateless_scope import get_stateless_scope

    return get_stateless_scope()


def scope_values(scope: Any) -> dict:
    """The values of variables in a StatelessScope, by the id of the variable; can be changed."""
    return scope.state_mapping


def schedule_of(optimizer: Any) -> Any:
    """The learning rate schedule of an optimizer, or of the innermost one; None for a constant."""
    rate = innermost(optimizer)._learning_rate
    return rate if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule) else None
