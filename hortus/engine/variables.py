"""Finding the variables that a step can touch, reading and clearing them."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np

_SEED_STATE = "seed_generator_state"


def find_variables(*things: Any) -> list[Any]:
    """All variables of models, layers, metrics, optimizers and containers of them, each once.

    Of any other object, such as a task, those that are its attributes.
    """
    found: dict[int, Any] = {}
    for thing in things:
        for variable in _variables(thing, depth=0):
            found.setdefault(id(variable), variable)
    return list(found.values())


def seed_states(variables: Iterable[Any]) -> list[Any]:
    """Those of `variables` that are the state of a random generator."""
    return [variable for variable in variables if variable.path.endswith(_SEED_STATE)]


def read(variable: Any) -> np.ndarray:
    """The value of a variable, or of a tensor, of either engine."""
    # Keras takes ten times as long, by way of a tensor. What is distributed is left to it.
    value = getattr(variable, "value", variable)
    if type(value).__name__ == "ResourceVariable":
        return value.numpy()
    return keras.ops.convert_to_numpy(variable)


def set_to_zero(variables: Iterable[Any]) -> None:
    """Gives all variables the value 0, outside of compiled code."""
    for variable in variables:
        if type(variable.value).__name__ == "ResourceVariable":
            variable.value.assign(_zeros(tuple(variable.shape), variable.dtype), read_value=False)
        else:
            variable.assign(keras.ops.zeros(variable.shape, variable.dtype))


@functools.lru_cache(maxsize=64)
def _zeros(shape: tuple[int, ...], dtype: str) -> Any:
    return keras.ops.zeros(shape, dtype)


def _variables(thing: Any, depth: int) -> Iterator[Any]:
    if isinstance(thing, keras.Variable):
        yield thing
    elif isinstance(thing, keras.random.SeedGenerator):
        yield thing.state
    elif isinstance(thing, Mapping):
        for value in thing.values():
            yield from _variables(value, depth + 1)
    elif isinstance(thing, (list, tuple, set)):
        for value in thing:
            yield from _variables(value, depth + 1)
    elif hasattr(thing, "variables") and not callable(thing.variables):
        yield from thing.variables
    elif depth == 0 and hasattr(thing, "__dict__"):
        for value in vars(thing).values():
            if isinstance(value, _HOLDERS):
                yield from _variables(value, depth + 1)


_HOLDERS = (
    keras.Variable,
    keras.random.SeedGenerator,
    keras.Layer,
    keras.metrics.Metric,
    keras.optimizers.Optimizer,
    dict,
    list,
    tuple,
)
