"""Merging overrides into a config: all of them, or none and one error that names every problem."""

import warnings
from collections.abc import Mapping
from typing import Any, Optional, Protocol

from hortus.hyperparams.errors import (
    ConfigError,
    ConfigWarning,
    LockedError,
    Problem,
    UnknownKeyError,
    WrongTypeError,
    did_you_mean,
    raise_problems,
    short,
)
from hortus.hyperparams.origin import CODE, Origin
from hortus.hyperparams.path import Path, format_path
from hortus.hyperparams.types import INVALID, MAX_DEPTH, Anything, Type

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
        self._warnings: list[str] = []
        self._assignments: list[tuple[Any, str, Any, Origin]] = []

    def report(self, path: Path, message: str, kind: type[ConfigError] = ConfigError) -> Any:
        """Notes a problem; returns INVALID, for the caller to return."""
        origin = self.source.origin(path)
        self.problems.append(Problem(path, message, None if origin is CODE else str(origin), kind))
        return INVALID

    def warn(self, path: Path, predicate: str) -> None:
        """Notes something doubtful about the value at `path`, to be said if the merge succeeds."""
        self._warnings.append(f"{format_path(path)} ({self.source.origin(path)}){predicate}")

    def trial(self) -> "Merge":
        """A merge whose outcome counts only if `accept` takes it."""
        return Merge(self.open_class, self.source, self.is_strict)

    def accept(self, trial: "Merge") -> None:
        self._assignments += trial._assignments
        self._warnings += trial._warnings

    def is_config(self, value: Any) -> bool:
        return isinstance(value, self.open_class)

    def config(self, cls: type, value: Any, current: Any, path: Path) -> Any:
        """The config to store where a `cls` is expected and a mapping or a config came."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            complaint = f"expected a {cls.__name__}, got a {type(value).__name__}"
            return self.report(path, complaint, WrongTypeError)
        if len(path) > MAX_DEPTH:
            return self.report(path[:8], "nested too deeply")
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
            where = (*path, key if isinstance(key, str) else short(key))
            kind = self._type_of(target, key, where, is_new)
            if kind is not None:
                self._plan(target, key, value, kind, where, values)

    def _plan(
        self, target: Any, key: str, value: Any, kind: Type, path: Path, siblings: Mapping
    ) -> None:
        """Plans one assignment, unless something speaks against it."""
        spec = type(target)._fields().get(key)
        if value is None and spec is not None and spec.empty is not None:
            value = spec.empty  # `init_checkpoint: null` where no text means none
        current = target.__dict__.get(key)
        planned = len(self._assignments)
        parsed = kind.parse(value, current, path, self)
        if parsed is INVALID:
            return
        objection = target._objection(key, parsed, siblings)
        if objection:
            self.report(path, objection)
            return
        if spec is None and key not in target._extras and type(target) is not self.open_class:
            self.warn(path, f": {key!r} is no field of {type(target).__name__}; added")
        if spec is not None and spec.inert and target._ready:
            inside = self._assignments[planned:]
            if parsed != current or any(new != of.__dict__.get(k) for of, k, new, _ in inside):
                self.warn(path, f" has no effect: {spec.inert}")
        self._assignments.append((target, key, parsed, self.source.origin(path)))

    def _type_of(self, target: Any, key: Any, path: Path, is_new: bool) -> Optional[Type]:
        """The type of a field, or of a key that may be added; else None, with a report."""
        cls = type(target)
        spec = cls._fields().get(key)
        if spec is not None:
            return spec.type
        if key in target._extras:
            return _ANYTHING
        if not isinstance(key, str) or not key or key.startswith("_"):
            complaint = f"{short(key)} is not a possible key of {cls.__name__}"
        elif self.is_strict and not (is_new and cls is self.open_class):
            near = did_you_mean(key, target._keys())
            complaint = f"unknown key {short(key)} of {cls.__name__}.{near}"
        elif hasattr(cls, key):
            complaint = f"{key!r} is reserved, it is a method of {cls.__name__}; choose another key"
        else:
            return _ANYTHING
        self.report(path, complaint, UnknownKeyError)
        return None

    def commit(self) -> None:
        """Assigns everything, or raises all problems and assigns nothing."""
        raise_problems(self.problems)
        # First, as a warning can be an error (python -W error) and must not leave half a merge.
        for message in self._warnings:
            warnings.warn(message, ConfigWarning, stacklevel=3)
        for target, key, value, origin in self._assignments:
            target._store(key, value, origin)
