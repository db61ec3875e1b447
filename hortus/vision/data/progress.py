"""Telling whoever runs a data tool how far it is, without knowing how that is shown."""

import contextlib
import contextvars
from collections.abc import Callable, Iterable, Iterator
from typing import Optional, TypeVar

_T = TypeVar("_T")
Listener = Callable[[str, int, Optional[int]], None]
"""Called with what is done, how many are done, and how many there are, if that is known."""

_LISTENER: contextvars.ContextVar[Optional[Listener]] = contextvars.ContextVar(
    "listener", default=None
)


@contextlib.contextmanager
def reported_to(listener: Listener) -> Iterator[None]:
    """What is tracked inside of this context is reported to `listener`."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def track(items: Iterable[_T], what: str, total: Optional[int] = None) -> Iterator[_T]:
    """Yields `items` and reports how many of `total` have been worked on."""
    listener, done = _LISTENER.get(), 0
    for done, item in enumerate(items):
        if listener is not None:
            listener(what, done, total)
        yield item
        done += 1
    if listener is not None:
        listener(what, done, done)
