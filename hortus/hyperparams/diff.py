"""Looking through a config: all its values, or what differs between two."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Optional, Union

from hortus.hyperparams.base_config import Config
from hortus.hyperparams.origin import Origin
from hortus.hyperparams.path import Path, format_path

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "(absent)"})()
"""Stands for the value of a key that one of two configs does not have."""


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One value of a config that neither is nor holds a config."""

    path: str
    value: Any
    owner: Config
    name: str

    @property
    def origin(self) -> Origin:
        return self.owner.origin(self.name)


@dataclasses.dataclass(frozen=True)
class Difference:
    """A path at which two configs differ."""

    path: str
    old: Any
    new: Any
    origin: Optional[Origin] = None
    """Where the new value came from."""


def walk(config: Config) -> Iterator[Leaf]:
    """All values that count, in order, with dotted paths; of a OneOfConfig the chosen branch."""
    yield from _leaves(config, (), config, "")


def _leaves(value: Any, path: Path, owner: Config, name: str) -> Iterator[Leaf]:
    if isinstance(value, Config):
        for key in value._visible_keys():
            yield from _leaves(value.__dict__[key], (*path, key), value, key)
    elif _holds_config(value):
        for part, item in _items(value):
            yield from _leaves(item, (*path, part), owner, name)
    else:
        yield Leaf(format_path(path), value, owner, name)


def _holds_config(value: Any) -> bool:
    return any(isinstance(item, Config) or _holds_config(item) for _, item in _items(value))


def _items(value: Any) -> Iterator[tuple[Union[str, int], Any]]:
    """What a list or a mapping holds, with the path to it; nothing of other values."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key), item
    elif isinstance(value, (list, tuple)):
        yield from enumerate(value)


def diff(new: Config, old: Config) -> list[Difference]:
    """What differs between two configs, in the order of `new`."""
    old_values = {leaf.path: leaf.value for leaf in walk(old)}
    differences = []
    for leaf in walk(new):
        before = old_values.pop(leaf.path, ABSENT)
        if before is ABSENT or before != leaf.value:
            differences.append(Difference(leaf.path, before, leaf.value, leaf.origin))
    gone = [Difference(path, value, ABSENT) for path, value in old_values.items()]
    return differences + gone
