"""The parts of an optimizer, with each slot named after its weight."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import keras

Path = tuple[str, ...]


def children(optimizer: Any, weight_names: Mapping[int, str]) -> Iterator[tuple[Path, Any]]:
    """The variables, slots and inner optimizers that an optimizer holds, with their paths.

    Optimizers keep a list per slot that runs parallel to a list of weights. Which list of weights
    that is, is found by the names that Keras gives slots and, failing that, by the shapes.

    Args:
        optimizer: any Keras optimizer, or a wrapper of one.
        weight_names: `id(weight)` to its name. Slots of other weights are named by index.
    """
    own = {id(v) for v in optimizer.variables}
    attributes = {name.lstrip("_"): value for name, value in sorted(vars(optimizer).items())}
    scalars = {id(v) for v in attributes.values() if isinstance(v, keras.Variable)}
    weight_lists = [
        value
        for value in attributes.values()
        if _is_list(value) and value and all(id(v) in weight_names for v in value)
    ]
    slots: dict[Path, list[tuple[str, Any]]] = {}
    for name, value in attributes.items():
        # A list with the step in it is Keras' list of everything, which names nothing.
        if isinstance(value, keras.optimizers.Optimizer):
            yield (name,), value
        elif isinstance(value, keras.Variable):
            if id(value) in own:
                yield (name,), value
        elif _is_list(value) and not any(id(v) in scalars for v in value):
            weights = _parallel_weights(value, weight_lists)
            for index, slot in enumerate(value):
                weight = weights[index] if weights else None
                where = tuple(weight_names[id(weight)].split("/")) if weights else (str(index),)
                for parts, variable in _flatten(slot):
                    if id(variable) in own:
                        path = (_slot_name(name, variable, weight), *where, *parts)
                        slots.setdefault(path, []).append((name, variable))
    for path, found in slots.items():
        for name, variable in found:
            # Two lists whose slots Keras names alike are told apart by their attributes.
            yield (path if len(found) == 1 else (name, *path[1:])), variable


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _parallel_weights(slots: Sequence[Any], candidates: list[Any]) -> Optional[Sequence[Any]]:
    same_length = [weights for weights in candidates if len(weights) == len(slots)]
    for matches in (_matches_names, _matches_shapes):
        for weights in same_length:
            if matches(slots, weights):
                return weights
    return same_length[0] if same_length else None


def _matches_names(slots: Sequence[Any], weights: Sequence[Any]) -> bool:
    pairs = [(s, w) for s, w in zip(slots, weights, strict=True) if s is not None]
    return all(
        isinstance(slot, keras.Variable) and slot.name.startswith(_flat(weight))
        for slot, weight in pairs
    )


def _matches_shapes(slots: Sequence[Any], weights: Sequence[Any]) -> bool:
    pairs = [(s, w) for s, w in zip(slots, weights, strict=True) if s is not None]
    return all(
        isinstance(slot, keras.Variable) and tuple(slot.shape) == tuple(weight.shape)
        for slot, weight in pairs
    )


def _slot_name(attribute: str, variable: Any, weight: Optional[Any]) -> str:
    """The name its author gave the slot ("momentum"), or else the attribute that holds it."""
    if weight is not None and variable.name.startswith(_flat(weight)):
        return variable.name[len(_flat(weight)) :] or attribute
    return attribute


def _flat(weight: Any) -> str:
    """What `add_variable_from_reference` puts before the name of the slot."""
    return weight.path.replace("/", "_") + "_"


def _flatten(slot: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(slot, keras.Variable):
        yield (), slot
    elif _is_list(slot):
        for index, inner in enumerate(slot):
            for parts, variable in _flatten(inner):
                yield (str(index), *parts), variable
    elif isinstance(slot, Mapping):
        for key in sorted(slot, key=str):
            for parts, variable in _flatten(slot[key]):
                yield (str(key), *parts), variable
