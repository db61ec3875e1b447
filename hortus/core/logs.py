"""Logs: what a training loop or an evaluation returns, values by name, maybe nested."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Optional, Union

import numpy as np

Logs = Mapping[str, Any]
Scalar = Union[bool, int, float]
Metric = Union[str, Callable[[Logs], Any]]
"""A value of the logs: its name, with `|` between the parts of a nested one, or a function."""


def as_scalar(value: Any) -> Optional[Scalar]:
    """The Python number of a 0-d value (Python, NumPy, tensor, variable); None for all others."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    array = np.asarray(value)
    if array.ndim or array.dtype.kind in "USOcmM":
        return None
    if array.dtype.kind in "biu":
        return array.item()
    return float(array)  # also of bfloat16, whose item() is no Python number


def scalars(logs: Logs) -> dict[str, Any]:
    """The numbers of the logs as Python values, nested as they are; the rest is left out."""
    found: dict[str, Any] = {}
    for name, value in logs.items():
        kept = scalars(value) if isinstance(value, Mapping) else as_scalar(value)
        if kept is not None and kept != {}:
            found[str(name)] = kept
    return found


def flatten(logs: Logs) -> dict[str, Any]:
    """The logs without nesting: `{"a": {"b": 1}}` becomes `{"a|b": 1}`."""
    flat: dict[str, Any] = {}
    for name, value in logs.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}|{inner}": leaf for inner, leaf in flatten(value).items()})
        else:
            flat[str(name)] = value
    return flat


def lookup(logs: Logs, metric: Metric) -> float:
    """The number that `metric` stands for.

    Raises:
        KeyError: there is no such name in the logs.
        ValueError: the value is not a single number.
    """
    if callable(metric):
        value, name = metric(logs), getattr(metric, "__name__", "metric")
    else:
        flat, name = flatten(logs), metric
        if name not in flat:
            near = difflib.get_close_matches(name, flat, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            known = ", ".join(sorted(flat)) or "nothing"
            raise KeyError(f"no metric {name!r} in the logs: {hint}they hold {known}")
        value = flat[name]
    number = as_scalar(value)
    if number is None:
        raise ValueError(f"metric {name!r} is no single number: shape {np.shape(value)}")
    return float(number)
