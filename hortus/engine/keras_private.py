"""Every private hook of Keras that hortus relies on, in one place, each with a contract test."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import keras

from hortus.engine.innermost import innermost
from hortus.engine.variables import read


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


@contextlib.contextmanager
def name_first_metrics() -> Iterator[None]:
    """Inside, `super().__init__(name)` of a metric means its name, as it did in TensorFlow 2.

    Keras 3 has the dtype in the first place, and takes no name for one.
    """
    original = keras.metrics.Metric.__init__

    def init(self: Any, dtype: Any = None, name: Any = None) -> None:
        if isinstance(dtype, str) and name is None and not _is_dtype(dtype):
            dtype, name = None, dtype
        original(self, dtype=dtype, name=name)

    keras.metrics.Metric.__init__ = init
    try:
        yield
    finally:
        keras.metrics.Metric.__init__ = original


def _is_dtype(name: str) -> bool:
    try:
        keras.dtype_policies.get(name)
    except ValueError:
        return False
    return True


class Rate(float):
    """A learning rate that can be asked for that of another step: `rate(step)`."""

    schedule: Any = None

    def __call__(self, step: Any) -> "Rate":
        if self.schedule is None:
            return self
        return Rate(keras.ops.convert_to_numpy(self.schedule(step)))

    def numpy(self) -> "Rate":
        """The same number, as of a tensor."""
        return self


@contextlib.contextmanager
def callable_learning_rate(optimizer: Any) -> Iterator[None]:
    """Inside, `optimizer.learning_rate` is a `Rate`; outside of compiled code only.

    In TensorFlow 2 it was the schedule, so that trainers wrote
    `optimizer.learning_rate(optimizer.iterations)`. In Keras 3 it is the current value.
    """
    if optimizer is None:
        yield
        return
    cls: Any = type(optimizer)
    object.__setattr__(optimizer, "__class__", _with_callable_rate(cls))
    try:
        yield
    finally:
        object.__setattr__(optimizer, "__class__", cls)


@functools.cache
def _with_callable_rate(cls: Any) -> Any:
    def learning_rate(self: Any) -> Rate:
        rate = Rate(read(cls.learning_rate.fget(self)))
        source = innermost(self)._learning_rate
        if isinstance(source, keras.optimizers.schedules.LearningRateSchedule):
            rate.schedule = source
        return rate

    return type(
        cls.__name__, (cls,), {"learning_rate": property(learning_rate, cls.learning_rate.fset)}
    )
