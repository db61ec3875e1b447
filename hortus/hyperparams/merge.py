"""Merging overrides into a config: all of them, or none and one error that names every problem."""

from collections.abc import Mapping
from typing import Any, Optional, Protocol

from hortus.hyperparams.errors import (
    ConfigError,
    LockedError,
    Path,
    Problem,
    UnknownKeyError,
    WrongTypeError,
    did_you_mean,
    raise_problems,
)
from hortus.hyperparams.origin import CODE, Origin
from hortus.hyperparams.types import INVALID, Anything, shown

_ANYTHING = Anything()


class Source(Protocol):
    """Knows where the value at a path was written."""

    def origin(self, path: Path) -> Origin: ...


class FromCode:
    """Values handed over by a Python caller."""

    def origin(self, path: Path) -> Origin:
        return CODE


class Merge:
    """One override under way: it collects problems, and what to assign if there are none."""

    def __init__(self, open_class: type, source: Optional[Source] = None, is_strict: bool = True):
        self.open_class = open_class
        self.source = source or FromCode()
        self.is_strict = is_strict
        self.problems: list[Problem] = []
        self._assignments: list[tuple[Any, str, Any, Origin]] = []

    def report(self, path: Path, message: str, kind: type = ConfigError) -> Any:
        """Notes a problem; returns INVALID, for the caller to return."""
        origin = self.source.origin(path)
        self.problems.append(Problem(path, message, None if origin is CODE else str(origin), kind))
        return INVALID

    def trial(self) -> "Merge":
        """A merge whose outcome counts only if `accept` takes it."""
        return Merge(self.open_class, self.source, self.is_strict)

    def accept(self, trial: "Merge") -> None:
        self._assignments += trial._assignments

    def is_config(self, value: Any) -> bool:
        return isinstance(value, self.open_class)

    def config(self, cls: type, value: Any, current: Any, path: Path) -> Any:
        """The config to store where a `cls` is expected and a mapping or a config came."""
        if self.is_config(value):
            if isinstance(value, cls):
                return value
            complaint = f"expected a {cls.__name__}, got a {type(value).__name__}"
            return self.report(path, complaint, WrongTypeError)
        is_new = not isinstance(current, cls)
        target = cls() if is_new else current
        before = len(self.problems)
        self.into(target, value, path, is_new)
        return INVALID if len(self.problems) > before else target

    def into(self, target: Any, values: Mapping, path: Path = (), is_new: bool = False) -> None:
        """Plans the assignment of `values` to the fields of `target`."""
        if target._locked:
            self.report(path, "the config is locked; use replace() for a changed copy", LockedError)
            return
        for key, value in values.items():
            where = (*path, key if isinstance(key, str) else shown(key))
            kind = self._type_of(target, key, where, is_new)
            if kind is None:
                continue
            parsed = kind.parse(value, target.__dict__.get(key), where, self)
            complaint = None if parsed is INVALID else target._objection(key, parsed, values)
            if complaint:
                self.report(where, complaint)
            elif parsed is not INVALID:
                self._assignments.append((target, key, parsed, self.source.origin(where)))

    def _type_of(self, target: Any, key: Any, path: Path, is_new: bool) -> Any:
        fields = type(target)._fields()
        if isinstance(key, str) and key in fields:
            return fields[key].type
        if key in target._extras:
            return _ANYTHING
        name = type(target).__name__
        if not isinstance(key, str) or not key.isidentifier() or key.startswith("_"):
            complaint = f"{shown(key)} is not a possible key of {name}"
            return self.report(path, complaint, UnknownKeyError) and None
        if not self.is_strict or (is_new and "_open" in vars(type(target))):
            if hasattr(type(target), key):
                complaint = f"{key!r} is the name of a method of {name}; choose another key"
                return self.report(path, complaint, UnknownKeyError) and None
            return _ANYTHING
        near = did_you_mean(key, target._keys())
        return self.report(path, f"unknown key {key!r} of {name}.{near}", UnknownKeyError) and None

    def commit(self) -> None:
        """Assigns everything, or raises all problems and assigns nothing."""
        raise_problems(self.problems)
        for target, key, value, origin in self._assignments:
            target._store(key, value, origin)
