"""Rules that several configs share: each yields one message per value that breaks it.

A message starts with the field's name and `must`: `validate` then says where that was set.
"""

from collections.abc import Iterator
from typing import Any

from hortus import hyperparams


def fractions(config: hyperparams.Config, *names: str) -> Iterator[str]:
    """Each named field lies in [0, 1], or is unset."""
    yield from bounded(config, *names, low=0.0, high=1.0)


def at_least(config: hyperparams.Config, low: float, *names: str) -> Iterator[str]:
    """Each named field is `low` or more, or is unset."""
    yield from bounded(config, *names, low=low)


def bounded(
    config: hyperparams.Config, *names: str, low: float, high: float | None = None
) -> Iterator[str]:
    """Each named number, or each number of a named list, lies in [low, high], or is unset."""
    rule = f"{low:g} or more" if high is None else f"between {low:g} and {high:g}"
    for name in names:
        for value in _numbers(getattr(config, name)):
            if not (value >= low and (high is None or value <= high)):
                yield f"{name} must be {rule}, got {value:g}"


def positive(config: hyperparams.Config, *names: str) -> Iterator[str]:
    """Each named field is above zero, or is unset."""
    for name in names:
        for value in _numbers(getattr(config, name)):
            if not value > 0:
                yield f"{name} must be above 0, got {value:g}"


def ordered(config: hyperparams.Config, low: str, high: str) -> Iterator[str]:
    """Field `low` does not exceed field `high`; either may be unset."""
    smallest, largest = getattr(config, low), getattr(config, high)
    if smallest is not None and largest is not None and smallest > largest:
        yield f"{low} must not exceed {high} ({largest:g}), got {smallest:g}"


def rising_range(config: hyperparams.Config, *names: str) -> Iterator[str]:
    """Each named pair is written as (smallest, largest), or is unset."""
    for name in names:
        pair = getattr(config, name)
        if pair is not None and len(pair) == 2 and pair[0] > pair[1]:
            yield f"{name} must be written as [smallest, largest], got {list(pair)}"


def length(config: hyperparams.Config, expected: int, *names: str) -> Iterator[str]:
    """Each named list has `expected` items, or is empty or unset."""
    for name in names:
        value = getattr(config, name)
        if value and len(value) != expected:
            yield f"{name} must have {expected} items, got {list(value)}"


def one_of(config: hyperparams.Config, name: str, choices: tuple[Any, ...]) -> Iterator[str]:
    """The named field is one of `choices`."""
    value = getattr(config, name)
    if value not in choices:
        known = ", ".join("null" if choice is None else str(choice) for choice in choices)
        yield f"{name} must be one of {known}; got {value!r}"


def _numbers(value: Any) -> list[float]:
    values = value if isinstance(value, (list, tuple)) else [value]
    return [number for number in values if number is not None]
