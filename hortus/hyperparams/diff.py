"""Looking through a config: all its values, or what differs between two."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Optional

from hortus.hyperparams.base_config import Config
from hortus.hyperparams.errors import format_path
from hortus.hyperparams.origin import Origin

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "(absent)"})()
"""Stands for the value of a key that one of two configs does not have."""


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One value of a config that is not itself a config."""

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


def walk(config: Config, _path: tuple = ()) -> Iterator[Leaf]:
    """All values that count, in order, with dotted paths; of a OneOfConfig the chosen branch."""
    for key in config._visible_keys():
        value = config.__dict__[key]
        path = (*_path, key)
        if isinstance(value, Config):
            yield from walk(value, path)
        elif isinstance(value, (list, tuple)) and any(isinstance(item, Config) for item in value):
            for index, item in enumerate(value):
                yield from walk(item, (*path, index))
        else:
            yield Leaf(format_path(path), value, config, key)


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
