"""Functions that are declared once, with `keras.ops`, and that a backend may speed up.

    @dispatched()
    def half_sum_of_squares(inputs):
        return 0.5 * ops.sum(ops.square(inputs))

    @kernels.half_sum_of_squares.on("tensorflow")
    def _half_sum_of_squares(inputs):
        return tf.nn.l2_loss(inputs)

The declaration says what the function takes and returns, and works on every backend. A backend
registers a faster way with the same arguments. It returns None where it has nothing faster, and the
declaration takes over.
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Generic, ParamSpec, TypeVar

import keras

P = ParamSpec("P")
R = TypeVar("R")


class Setting:
    """A switch that knows which functions it governs. It starts switched on.

    Args:
        name: of the setting, for messages.
    """

    def __init__(self, name: str):
        self.name = name
        self.governs: list[str] = []
        """Names of the functions that take their faster way only while this is on."""
        self._allowed = True
        self._in_step: contextvars.ContextVar[bool] = contextvars.ContextVar(name, default=False)

    @property
    def allowed(self) -> bool:
        """Whether it is on."""
        return self._allowed

    def allow(self, allowed: bool) -> None:
        """Switches it for the rest of the process, as a run does."""
        self._allowed = allowed

    @contextlib.contextmanager
    def scope(self, allowed: bool) -> Iterator[None]:
        """Switches it inside a `with`; in all threads, as strategies trace replicas in theirs."""
        former, self._allowed = self._allowed, allowed
        try:
            yield
        finally:
            self._allowed = former

    @property
    def in_training_step(self) -> bool:
        """Whether the caller is being differentiated by `engine.value_and_grad`."""
        return self._in_step.get()

    @contextlib.contextmanager
    def training_step(self) -> Iterator[None]:
        """Marks a `with` as part of a training step, to tell it from evaluation and export."""
        token = self._in_step.set(True)
        try:
            yield
        finally:
            self._in_step.reset(token)


class Dispatched(Generic[P, R]):
    """A function with faster ways on some backends.

    Args:
        plain: computes it on every backend.
        setting: can switch the faster ways off, because they round differently; None where they
            are always taken.
    """

    def __init__(self, plain: Callable[P, R], setting: Setting | None = None):
        functools.update_wrapper(self, plain)
        self.plain = plain
        self.setting = setting
        if setting is not None:
            setting.governs.append(plain.__name__)
        self._ways: dict[str, Callable[P, R | None]] = {}
        self._replacement: Callable[P, R] | None = None

    def on(self, backend: str) -> Callable[[Callable[P, R | None]], Callable[P, R | None]]:
        """Decorates a backend's faster way; see the top of this module for what it returns."""

        def register(way: Callable[P, R | None]) -> Callable[P, R | None]:
            if backend in self._ways:
                raise ValueError(
                    f"{self.plain.__name__} already has a way on {backend}, from "
                    f"{self._ways[backend].__module__}; {way.__module__} cannot add another"
                )
            self._ways[backend] = way
            return way

        return register

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._replacement is not None:
            return self._replacement(*args, **kwargs)
        found = self.fast(*args, **kwargs)
        return self.plain(*args, **kwargs) if found is None else found

    def fast(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """The result of the backend's faster way; None if there is none here, or it is off."""
        if self.setting is not None and not self.setting.allowed:
            return None
        backend = keras.backend.backend()
        _load_ways(backend)
        way = self._ways.get(backend)
        return None if way is None else way(*args, **kwargs)

    @contextlib.contextmanager
    def replaced(self, function: Callable[P, R]) -> Iterator[None]:
        """Calls `function` instead inside a `with`, in all threads."""
        former, self._replacement = self._replacement, function
        try:
            yield
        finally:
            self._replacement = former


def dispatched(
    setting: Setting | None = None,
) -> Callable[[Callable[P, R]], Dispatched[P, R]]:
    """Decorates a declaration; `setting` as in `Dispatched`."""
    return lambda plain: Dispatched(plain, setting)


@functools.cache
def _load_ways(backend: str) -> None:
    """Imports the modules in which a backend registers its ways."""
    if backend == "tensorflow":
        from hortus.engine.tensorflow import collectives, kernels  # noqa: F401
