"""From an annotation to a parser: checks a value and converts it to the annotated type.

Containers and nested configs are taken apart here, so that a problem knows its dotted path and
every nested value its origin; single values are checked by pydantic.
"""

import collections.abc
import enum
import functools
import math
import operator
import os
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Optional, Union

from hortus.hyperparams.bounds import UNBOUNDED, Bounds
from hortus.hyperparams.errors import (
    ConfigError,
    OutOfBoundsError,
    WrongTypeError,
    near_names,
    short,
)
from hortus.hyperparams.path import Path

if typing.TYPE_CHECKING:
    from hortus.hyperparams.merge import Merge

INVALID: Any = object()
"""What a parser returns after it has reported a problem."""

MAX_DEPTH = 64
"""Levels of nesting, far more than a config has; bounds what refers to itself."""

_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "null",
}
_SCALARS = tuple(_NAMES)


class ItemPatch(dict):
    """Changes to single items of a list, by index: what `heads[0].size=2` asks for."""


def shown(value: Any) -> str:
    """The value as an error message shows it: short, with its type."""
    if value is None:
        return "null"
    if isinstance(value, ItemPatch):
        return "changes to single items"
    return f"{short(value)} ({type(value).__name__})"


class Type:
    """A parsed annotation."""

    name: str
    """What it holds, in words for an error message."""

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        """The value to store, or INVALID after `merge.report`.

        `current` is what the field holds now: nested configs and single list items merge into it.
        """
        raise NotImplementedError

    def accepts_exactly(self, value: Any) -> bool:
        """Whether `value` needs no conversion."""
        return False

    def may_hold(self, value: Any) -> bool:
        """Whether `value` is of the general shape: single value, list or mapping."""
        raise NotImplementedError

    def _refuse(self, value: Any, path: Path, merge: "Merge", hint: str = "") -> Any:
        return merge.report(path, f"expected {self.name}, got {shown(value)}{hint}", WrongTypeError)


class Scalar(Type):
    """One value that is not a container: checked and converted by pydantic."""

    def __init__(self, annotation: Any):
        self.annotation = annotation
        is_literal = typing.get_origin(annotation) is Literal
        self.choices = typing.get_args(annotation) if is_literal else ()
        self.plain = getattr(annotation, "__origin__", annotation)
        self.is_plain = any(annotation is plain for plain in _SCALARS)
        """Whether a name says all about the type, so that pydantic's reason would be noise."""
        if self.choices:
            self.name = "one of " + ", ".join(map(repr, self.choices))
        else:
            name = getattr(self.plain, "__name__", str(self.plain).replace("typing.", ""))
            self.name = _NAMES.get(self.plain, name)

    def accepts_exactly(self, value: Any) -> bool:
        if self.choices:
            return any(value == choice and type(value) is type(choice) for choice in self.choices)
        return type(value) is self.annotation

    def may_hold(self, value: Any) -> bool:
        if self.annotation is type(None):
            return value is None
        return value is not None and not isinstance(value, (Mapping, list, tuple))

    @functools.cached_property
    def adapter(self) -> Any:
        """Pydantic's validator; loaded on demand, as most values are of their exact type."""
        import pydantic

        config = pydantic.ConfigDict(arbitrary_types_allowed=True, coerce_numbers_to_str=True)
        try:
            return pydantic.TypeAdapter(self.annotation, config=config)
        except pydantic.errors.PydanticUserError:  # the type brings a config of its own
            return pydantic.TypeAdapter(self.annotation)

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        value = _unwrapped(value)
        if self.accepts_exactly(value):
            return value
        if self.choices:
            near = near_names(value, map(str, self.choices)) if isinstance(value, str) else []
            return self._refuse(value, path, merge, f". Did you mean {near[0]}?" if near else "")
        if self.plain is str and isinstance(value, os.PathLike):
            value = os.fspath(value)
        try:
            return self.adapter.validate_python(value)
        except (ValueError, OverflowError) as error:  # pydantic's errors are ValueErrors
            reason = (
                "" if self.is_plain or not hasattr(error, "errors") else error.errors()[0]["msg"]
            )
            return self._refuse(value, path, merge, f": {reason}" if reason else "")


class Number(Scalar):
    """A whole number or a float, within its bounds."""

    def __init__(self, annotation: Any, bounds: Bounds = UNBOUNDED):
        super().__init__(annotation)
        self.bounds = bounds
        # Other people's annotations, such as pydantic's: it has to look at each value.
        extras = typing.get_args(annotation)[1:]
        self.is_ours = self.is_plain = all(isinstance(extra, Bounds) for extra in extras)
        self._kind = self.name
        self.name = self._named(bounds.words())

    def accepts_exactly(self, value: Any) -> bool:
        return type(value) is self.plain and self.is_ours and self.bounds.hold(value)

    def is_out_of_bounds(self, value: Any) -> bool:
        """Whether `value` is of the right type, and too small or too large."""
        is_right = type(value) is self.plain or (self.plain is float and type(value) is int)
        return is_right and not self.bounds.hold(value)

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        value = _unwrapped(value)
        if self.accepts_exactly(value):
            return value
        if isinstance(value, bool):
            return self._refuse(value, path, merge)
        if self.is_out_of_bounds(value):
            return self._refuse_size(value, path, merge)
        if self.plain is float and type(value) is int and self.is_ours:
            try:
                return float(value)  # so common that pydantic need not be loaded for it
            except OverflowError:
                return self._refuse_size(value, path, merge)
        parsed = super().parse(value, current, path, merge)
        if parsed is INVALID or self.bounds.hold(parsed):
            return parsed
        return self._refuse_size(value, path, merge)

    def _named(self, words: str) -> str:
        if not words:
            return self._kind
        joint = "from " if " to " in words else "of " if words[0] in "-0123456789" else ""
        return f"{self._kind} {joint}{words}"

    def _refuse_size(self, value: Any, path: Path, merge: "Merge") -> Any:
        high = self.bounds.high
        is_large = high is not None and isinstance(value, (int, float)) and value > high
        wanted = self._named(self.bounds.words(exact=is_large))
        if self.plain is float and not isinstance(value, int) and not math.isfinite(float(value)):
            wanted = wanted.replace("a number", "a finite number", 1)
        return merge.report(path, f"expected {wanted}, got {shown(value)}", OutOfBoundsError)


_PLAIN = {kind: (Number if kind in (int, float) else Scalar)(kind) for kind in _SCALARS}


class Anything(Type):
    """Plain data of any shape; a mapping becomes an open config."""

    name = "plain data (null, true/false, number, text, list or mapping)"

    def accepts_exactly(self, value: Any) -> bool:
        return type(value) in _SCALARS

    def may_hold(self, value: Any) -> bool:
        return True

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        if self.accepts_exactly(value):
            return value
        value = value.value if isinstance(value, enum.Enum) else _unwrapped(value)
        if isinstance(value, (list, tuple, ItemPatch)):
            if len(path) > MAX_DEPTH:
                return merge.report(path[:8], "nested too deeply")
            container = tuple if isinstance(value, tuple) else list
            return List(self, container).parse(value, current, path, merge)
        if isinstance(value, Mapping) or merge.is_config(value):
            return merge.config(merge.open_class, value, current, path)
        for plain in (bool, int, float, str):
            if isinstance(value, plain):
                return plain(value)
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        return self._refuse(value, path, merge)


class Nested(Type):
    """A config inside a config. None is always allowed: it drops the part."""

    def __init__(self, cls: type):
        self.cls = cls
        self.name = f"a {cls.__name__} (a mapping of its fields)"

    def accepts_exactly(self, value: Any) -> bool:
        return isinstance(value, self.cls)

    def may_hold(self, value: Any) -> bool:
        is_mapping = isinstance(value, Mapping) and not isinstance(value, ItemPatch)
        return is_mapping or hasattr(value, "as_dict")

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        if value is None:
            return None
        if self.may_hold(value):
            return merge.config(self.cls, value, current, path)
        return self._refuse(value, path, merge)


class List(Type):
    """A list, or a tuple of any length; single items can be changed by index."""

    def __init__(self, item: Type, container: type, keep_tuple: bool = False):
        self.item, self.keep_tuple = item, keep_tuple
        self.container: type[Any] = container
        self.name = "a list" if isinstance(item, Anything) else f"a list of {item.name}"

    def accepts_exactly(self, value: Any) -> bool:
        return type(value) is self.container and all(map(self.item.accepts_exactly, value))

    def may_hold(self, value: Any) -> bool:
        return isinstance(value, (list, tuple, ItemPatch))

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        value = _unwrapped(value)
        if isinstance(value, ItemPatch):
            items = self._patched(value, current, path, merge)
        elif isinstance(value, (list, tuple)):
            items = [
                self.item.parse(item, None, (*path, index), merge)
                for index, item in enumerate(_split_numbers(value, self.item, path, merge))
            ]
        else:
            hint = "; write it in brackets: [a, b]" if isinstance(value, (str, int, float)) else ""
            return self._refuse(value, path, merge, hint)
        if any(item is INVALID for item in items):
            return INVALID
        return (
            tuple(items) if self.keep_tuple and isinstance(value, tuple) else self.container(items)
        )

    def _patched(self, patch: ItemPatch, current: Any, path: Path, merge: "Merge") -> list[Any]:
        items = list(current) if isinstance(current, (list, tuple)) else []
        for index, value in sorted(patch.items()):
            if index > len(items):
                there = f"the list has {len(items)}; the next new one is [{len(items)}]"
                return [merge.report((*path, index), f"no item {index}: {there}")]
            old = items[index] if index < len(items) else None
            items[index : index + 1] = [self.item.parse(value, old, (*path, index), merge)]
        return items


class FixedTuple(Type):
    """A tuple of a fixed number of items, each with a type of its own."""

    def __init__(self, items: tuple[Type, ...]):
        self.items = items
        self.name = f"a list of exactly {len(items)} items"

    def accepts_exactly(self, value: Any) -> bool:
        return (
            type(value) is tuple
            and len(value) == len(self.items)
            and all(
                kind.accepts_exactly(item) for kind, item in zip(self.items, value, strict=True)
            )
        )

    def may_hold(self, value: Any) -> bool:
        return isinstance(value, (list, tuple, ItemPatch))

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        value = _unwrapped(value)
        old: list[Any] = [None] * len(self.items)
        if isinstance(value, ItemPatch):
            old = list(current) if isinstance(current, (list, tuple)) else []
            if max(value) >= len(old):
                message = f"no item {max(value)}: expected {self.name}"
                return merge.report((*path, max(value)), message)
            value = [value.get(index, item) for index, item in enumerate(old)]
        if not isinstance(value, (list, tuple)):
            return self._refuse(value, path, merge)
        value = _split_numbers(value, self.items[0] if self.items else None, path, merge)
        if len(value) != len(self.items):
            return self._refuse(value, path, merge)
        items = [
            kind.parse(item, before, (*path, index), merge)
            for index, (kind, item, before) in enumerate(zip(self.items, value, old, strict=True))
        ]
        return INVALID if any(item is INVALID for item in items) else tuple(items)


class Dict(Type):
    """A mapping with free keys; an override merges into what is there."""

    def __init__(self, key: Type, item: Type):
        self.key, self.item = key, item
        self.name = f"a mapping to {item.name}"

    def accepts_exactly(self, value: Any) -> bool:
        return type(value) is dict and all(
            self.key.accepts_exactly(key) and self.item.accepts_exactly(item)
            for key, item in value.items()
        )

    def may_hold(self, value: Any) -> bool:
        return isinstance(value, Mapping) or hasattr(value, "as_dict")

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        if merge.is_config(value):
            value = value.as_dict()
        if not isinstance(value, Mapping):
            return self._refuse(value, path, merge)
        items = dict(current) if isinstance(current, Mapping) else {}
        is_valid = True
        for key, item in value.items():
            where = (*path, str(key))
            new_key = self.key.parse(key, None, where, merge)
            new = self.item.parse(item, items.get(new_key), where, merge)
            is_valid = is_valid and new_key is not INVALID and new is not INVALID
            items[new_key] = new
        return items if is_valid else INVALID


class Either(Type):
    """A Union: the option that fits exactly, else the first that converts."""

    def __init__(self, options: tuple[Type, ...]):
        self.options = options
        names = [option.name for option in options]
        self.name = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"

    def accepts_exactly(self, value: Any) -> bool:
        return any(option.accepts_exactly(value) for option in self.options)

    def may_hold(self, value: Any) -> bool:
        return any(option.may_hold(value) for option in self.options)

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        value = _unwrapped(value)
        for option in self.options:
            if option.accepts_exactly(value):
                return option.parse(value, current, path, merge)
        fitting = [option for option in self.options if option.may_hold(value)]
        numbers = [option for option in fitting if isinstance(option, Number)]
        if any(option.is_out_of_bounds(value) for option in numbers):
            fitting = list(numbers)  # a number that is too large is not meant as text
        fitting.sort(key=lambda option: not _is_preferred(option, value, current))
        for option in fitting if len(fitting) > 1 else ():
            trial = merge.trial()
            parsed = option.parse(value, current, path, trial)
            if not trial.problems:
                merge.accept(trial)
                return parsed
        if len(fitting) == 1 or (fitting and fitting[0].accepts_exactly(current)):
            return fitting[0].parse(value, current, path, merge)  # its complaints say more
        return self._refuse(value, path, merge)


def _is_preferred(option: Type, value: Any, current: Any) -> bool:
    """Whether to try this option of a Union first."""
    if isinstance(option, Scalar):  # 128 for `Union[str, float]` stays a number
        return isinstance(option, Number) and isinstance(value, (int, float))
    return option.accepts_exactly(current)  # merge into what is there


def _unwrapped(value: Any) -> Any:
    """A NumPy number or array as plain data."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    return value


def _split_numbers(values: Any, item: Optional[Type], path: Path, merge: "Merge") -> Any:
    """Mends `[320 320, 3]`, a forgotten comma that YAML reads as the text '320 320'."""
    if not isinstance(item, Number) or not any(isinstance(value, str) for value in values):
        return values
    mended: list[Any] = []
    for index, value in enumerate(values):
        parts = value.split() if isinstance(value, str) else []
        try:
            numbers = [_number(part) for part in parts]
        except ValueError:
            numbers = []
        if len(numbers) > 1:
            read = ", ".join(map(str, numbers))
            merge.warn((*path, index), f": a comma is missing in {short(value)}; read as {read}")
            mended.extend(numbers)
        else:
            mended.append(value)
    return mended


def _number(text: str) -> Union[int, float]:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _annotated(annotation: Any, plain: Any, *extras: Any) -> Type:
    bounds = [extra for extra in extras if isinstance(extra, Bounds)]
    if plain in (int, float):
        return Number(annotation, functools.reduce(operator.and_, bounds, UNBOUNDED))
    if bounds:
        raise ConfigError(f"bounds belong to an int or a float, not to {plain}")
    return Scalar(annotation)


_LISTS = (list, collections.abc.MutableSequence)
_SEQUENCES = (collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)


def parse_type(annotation: Any, is_config_class: Any) -> Type:
    """The Type of an annotation; `is_config_class` tells which classes are configs."""
    recurse = functools.partial(parse_type, is_config_class=is_config_class)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and annotation in _PLAIN:
        return _PLAIN[annotation]
    if annotation is Any or annotation is object or isinstance(annotation, (str, typing.TypeVar)):
        return Anything()
    if is_config_class(annotation):
        return Nested(annotation)
    if origin is Union or origin is types.UnionType:
        return Either(tuple(map(recurse, args)))
    if annotation is None:
        return _PLAIN[type(None)]
    if origin is Annotated and is_config_class(args[0]):
        return Nested(args[0])
    if origin is Annotated:
        return _annotated(annotation, *args)
    if type(annotation).__name__ == "TypeAliasType":  # `type Size = int | None`, Python 3.12
        return recurse(annotation.__value__)
    container = origin or annotation
    if container is tuple:
        if not args:
            return List(Anything(), tuple)
        if len(args) == 2 and args[1] is Ellipsis:
            return List(recurse(args[0]), tuple)
        return FixedTuple(tuple(map(recurse, args)))
    if container in _LISTS:
        return List(recurse(args[0]) if args else Anything(), list)
    if container in _SEQUENCES:
        return List(recurse(args[0]) if args else Anything(), list, keep_tuple=True)
    if container in _DICTS:
        key, item = map(recurse, args or (str, Any))
        return Dict(key, item)
    if container in _SETS:
        raise ConfigError("a set cannot be written to a file in one way; use a list")
    return Scalar(annotation)
