"""Code in the style of TensorFlow 2 and orbit, which runs here as it is.

Everything that bends Keras or others' objects for its sake is in this module, and nothing of it
happens to those who bring no such code:

- trainers and evaluators that are plain objects, with `train(num_steps)` and `evaluate(num_steps)`;
- metrics whose constructor hands its name on as the first argument: only when Keras refused it;
- `metric.reset_states()`, and `optimizer.learning_rate(step)` in the hooks of a trainer: only where
  the trainer's or the task's own code, or that of their modules, speaks of them.
"""

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional, TypeVar

import keras

from hortus.core.runner import EvalRunner, Logs, TrainRunner
from hortus.engine import keras_private
from hortus.engine.variables import read

_T = TypeVar("_T")

# ---- objects that train and evaluate ----------------------------------------------------------


def as_train_runner(trainer: Any) -> TrainRunner:
    """A trainer as the controller wants it; for None one that cannot train."""
    if trainer is None:
        return TrainRunner()
    return trainer if isinstance(trainer, TrainRunner) else _ForeignTrainer(trainer)


def as_eval_runner(evaluator: Any) -> EvalRunner:
    """An evaluator as the controller wants it; for None one that cannot evaluate."""
    if evaluator is None:
        return EvalRunner()
    return evaluator if isinstance(evaluator, EvalRunner) else _ForeignEvaluator(evaluator)


class _ForeignTrainer(TrainRunner):
    """Any object with `train(num_steps)`; what else it has is used."""

    def __init__(self, trainer: Any):
        self._trainer = trainer

    @property
    def splits_loops(self) -> bool:  # type: ignore[override]
        return hasattr(self._trainer, "train_part")

    def train(self, num_steps: int) -> Optional[Logs]:
        return self._trainer.train(num_steps)

    def train_part(self, num_steps: int, first: bool, last: bool) -> Optional[Logs]:
        return self._trainer.train_part(num_steps, first=first, last=last)

    @property
    def timing(self) -> Optional[Any]:
        return getattr(self._trainer, "timing", None)

    def after_restore(self) -> None:
        getattr(self._trainer, "after_restore", super().after_restore)()

    def keeping_data(self) -> contextlib.AbstractContextManager:
        return getattr(self._trainer, "keeping_data", super().keeping_data)()

    @property
    def first_bad_step(self) -> Optional[int]:
        return getattr(self._trainer, "first_bad_step", None)

    def find_divergence(self, *args: Any, **kwargs: Any) -> Optional[Any]:
        return getattr(self._trainer, "find_divergence", super().find_divergence)(*args, **kwargs)


class _ForeignEvaluator(EvalRunner):
    """Any object with `evaluate(num_steps)`; what else it has is used."""

    def __init__(self, evaluator: Any):
        self._evaluator = evaluator

    def evaluate(self, num_steps: int = -1) -> Optional[Logs]:
        return self._evaluator.evaluate(num_steps)

    def after_restore(self) -> None:
        getattr(self._evaluator, "after_restore", super().after_restore)()

    def watch(self, watcher: Callable[[], None]) -> None:
        if hasattr(self._evaluator, "poll"):
            self._evaluator.poll = watcher


# ---- metrics ----------------------------------------------------------------------------------


def build_metrics(build: Callable[[], _T]) -> _T:
    """What `build` returns; called again, with names first, if a metric gave its name for a type.

    In TensorFlow 2, `super().__init__(name)` of a metric meant its name. Keras 3 has the type in
    the first place, and takes no name for one.
    """
    try:
        return build()
    except (TypeError, ValueError) as error:
        if not _took_name_for_type(error):
            raise
    with name_first_metrics():
        return build()


@contextlib.contextmanager
def name_first_metrics() -> Iterator[None]:
    """Inside, `super().__init__(name)` of a metric means its name."""
    original = keras.metrics.Metric.__init__

    def init(self: Any, dtype: Any = None, name: Any = None) -> None:
        if _is_name(dtype, name):
            dtype, name = None, dtype
        original(self, dtype=dtype, name=name)

    keras.metrics.Metric.__init__ = init
    try:
        yield
    finally:
        keras.metrics.Metric.__init__ = original


def _took_name_for_type(error: BaseException) -> bool:
    """Whether an error comes from a metric whose first argument was a name."""
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code is keras.metrics.Metric.__init__.__code__:
            return _is_name(frame.f_locals.get("dtype"), frame.f_locals.get("name"))
        traceback = traceback.tb_next
    return False


def _is_name(dtype: Any, name: Any) -> bool:
    if not isinstance(dtype, str) or name is not None:
        return False
    try:
        keras.dtype_policies.get(dtype)
    except ValueError:
        return True
    return False


def with_old_names(metrics: Iterable[Any], *users: Any) -> None:
    """Has metrics answer to `reset_states`, if the code of one of `users` speaks of it."""
    if not any(speaks_of(user, "reset_states") for user in users):
        return
    for metric in metrics:
        if hasattr(metric, "reset_state") and not hasattr(metric, "reset_states"):
            metric.reset_states = metric.reset_state


# ---- learning rates ---------------------------------------------------------------------------


@contextlib.contextmanager
def learning_rate_for(user: Any, optimizer: Any) -> Iterator[None]:
    """Inside, `optimizer.learning_rate` can be called, if the code of `user` speaks of it.

    In TensorFlow 2 it was the schedule, so that trainers wrote
    `optimizer.learning_rate(optimizer.iterations)`. In Keras 3 it is the current value. Not for
    compiled code.
    """
    if optimizer is None or not speaks_of(user, "learning_rate"):
        yield
        return
    with callable_learning_rate(optimizer):
        yield


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
    """Inside, `optimizer.learning_rate` is a `Rate`; outside of compiled code only."""
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
        rate.schedule = keras_private.schedule_of(self)
        return rate

    return type(
        cls.__name__, (cls,), {"learning_rate": property(learning_rate, cls.learning_rate.fset)}
    )


# ---- who brings such code ---------------------------------------------------------------------


def speaks_of(user: Any, name: str) -> bool:
    """Whether the code of an object's own classes, or of their modules, has this name in it.

    Classes of hortus itself do not count.
    """
    return any(_class_speaks_of(cls, name) for cls in type(user).__mro__ if not _is_ours(cls))


def _is_ours(cls: type) -> bool:
    top = cls.__module__.partition(".")[0]
    return top in ("hortus", "keras", "abc", "builtins") and not cls.__module__.endswith("_test")


@functools.cache
def _class_speaks_of(cls: type, name: str) -> bool:
    module = vars(sys.modules.get(cls.__module__, cls))
    functions = [value for value in module.values() if isinstance(value, types.FunctionType)]
    values = [*vars(cls).values(), *functions]
    return any(_has_name(code, name) for value in values for code in _codes(value))


def _codes(value: Any) -> Iterator[types.CodeType]:
    """The code of a function, method or property."""
    if isinstance(value, property):
        for function in (value.fget, value.fset):
            yield from _codes(function)
        return
    value = getattr(value, "__func__", value)
    while value is not None:
        code = getattr(value, "__code__", None)
        if isinstance(code, types.CodeType):
            yield code
        value = getattr(value, "__wrapped__", None)


def _has_name(code: types.CodeType, name: str) -> bool:
    if name in code.co_names or name in code.co_consts:
        return True
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return any(_has_name(part, name) for part in inner)
