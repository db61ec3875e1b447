"""From an annotation to a parser: checks a value and converts it to the annotated type.

Containers and nested configs are taken apart here, so that a problem knows its dotted path and every
nested value its origin; single values are checked by pydantic.
"""

import collections.abc
import functools
import os
import types
import typing
import warnings
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union

from hortus.hyperparams.errors import (
    ConfigWarning,
    Path,
    WrongTypeError,
    did_you_mean,
    format_path,
)

if typing.TYPE_CHECKING:
    from hortus.hyperparams.merge import Merge

INVALID: Any = object()
"""What a parser returns after it has reported a problem."""

_SCALARS = (bool, int, float, str, type(None))
_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "null",
}


class ItemPatch(dict):
    """Changes to single items of a list, by index: what `heads[0].size=2` asks for."""


def shown(value: Any) -> str:
    """The value as an error message shows it: short, with its type."""
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return "null" if value is None else f"{text} ({type(value).__name__})"


class Type:
    """A parsed annotation."""

    name: str

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        """The value to store, or INVALID after `merge.report`.

        `current` is what the field holds now: nested configs and single list items merge into it.
        """
        raise NotImplementedError

    def accepts_exactly(self, value: Any) -> bool:
        """Whether `value` needs no conversion."""
        return False

    def json_schema(self) -> dict[str, Any]:
        raise NotImplementedError


class Scalar(Type):
    """One value that is not a container: checked and converted by pydantic."""

    def __init__(self, annotation: Any):
        self.annotation = annotation
        self.choices = (
            typing.get_args(annotation) if typing.get_origin(annotation) is Literal else ()
        )
        if self.choices:
            self.name = "one of " + ", ".join(repr(choice) for choice in self.choices)
        else:
            plain = getattr(annotation, "__origin__", annotation)
            self.name = _NAMES.get(
                plain, getattr(plain, "__name__", str(plain).replace("typing.", ""))
            )

    @functools.cached_property
    def _adapter(self) -> Any:
        # Most configs hold exact types and never need pydantic: it is loaded on demand.
        import pydantic

        config = pydantic.ConfigDict(arbitrary_types_allowed=True, coerce_numbers_to_str=True)
        try:
            return pydantic.TypeAdapter(self.annotation, config=config)
        except pydantic.errors.PydanticUserError:  # the type brings a config of its own
            return pydantic.TypeAdapter(self.annotation)

    def accepts_exactly(self, value: Any) -> bool:
        if self.choices:
            return any(value == choice and type(value) is type(choice) for choice in self.choices)
        return type(value) is self.annotation

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        if self.accepts_exactly(value):
            return value
        import pydantic

        plain = getattr(self.annotation, "__origin__", self.annotation)
        if type(value).__module__ == "numpy" and hasattr(value, "item"):
            value = value.item()
        if plain is str and isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, bool) and plain in (int, float):
            return merge.report(path, f"expected {self.name}, got {shown(value)}", WrongTypeError)
        try:
            return self._adapter.validate_python(value)
        except pydantic.ValidationError as error:
            return merge.report(path, self._complaint(value, error), WrongTypeError)

    def _complaint(self, value: Any, error: Any) -> str:
        if self.choices:
            near = did_you_mean(value, self.choices) if isinstance(value, str) else ""
            near = near if near.startswith(" Did") else ""
            return f"expected {self.name}, got {shown(value)}.{near}"
        complaint = f"expected {self.name}, got {shown(value)}"
        if typing.get_origin(self.annotation) is Annotated or self.name not in _NAMES.values():
            complaint += f": {error.errors()[0]['msg']}"
        return complaint

    def json_schema(self) -> dict[str, Any]:
        simple = {
            bool: "boolean",
            int: "integer",
            float: "number",
            str: "string",
            type(None): "null",
        }
        if self.annotation in simple:
            return {"type": simple[self.annotation]}
        if self.choices:
            return {"enum": list(self.choices)}
        import pydantic

        try:
            return self._adapter.json_schema()
        except pydantic.errors.PydanticInvalidForJsonSchema:
            return {}


class Anything(Type):
    """Plain data of any shape; a mapping becomes an open config."""

    name = "plain data (null, true/false, number, text, list or mapping)"

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        if isinstance(value, ItemPatch):
            return List(self, list).parse(value, current, path, merge)
        if isinstance(value, Mapping) or merge.is_config(value):
            return merge.config(merge.open_class, value, current, path)
        if isinstance(value, (list, tuple)):
            items = [self.parse(item, None, (*path, i), merge) for i, item in enumerate(value)]
            return INVALID if any(item is INVALID for item in items) else type(value)(items)
        if isinstance(value, _SCALARS):
            return value
        if type(value).__module__ == "numpy" and hasattr(value, "item") and not value.shape:
            return value.item()
        return merge.report(path, f"expected {self.name}, got {shown(value)}", WrongTypeError)

    def accepts_exactly(self, value: Any) -> bool:
        return isinstance(value, _SCALARS)

    def json_schema(self) -> dict[str, Any]:
        return {}


class Nested(Type):
    """A config inside a config. None is always allowed: it drops the part."""

    def __init__(self, cls: type):
        self.cls = cls
        self.name = f"a {cls.__name__} (a mapping of its fields)"

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        if value is None:
            return None
        if isinstance(value, Mapping) or merge.is_config(value):
            return merge.config(self.cls, value, current, path)
        return merge.report(path, f"expected {self.name}, got {shown(value)}", WrongTypeError)

    def accepts_exactly(self, value: Any) -> bool:
        return isinstance(value, self.cls)

    def json_schema(self) -> dict[str, Any]:
        from hortus.hyperparams.schema import class_schema

        return class_schema(self.cls)


class List(Type):
    """A list, or a tuple of any length; single items can be changed by index."""

    def __init__(self, item: Type, container: type, keep_tuple: bool = False):
        self.item, self.container, self.keep_tuple = item, container, keep_tuple
        self.name = f"a list of {item.name}" if not isinstance(item, Anything) else "a list"

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        if isinstance(value, ItemPatch):
            items = self._patched(value, current, path, merge)
        elif isinstance(value, (list, tuple)):
            value = _split_numbers(value, self.item, path, merge)
            items = [
                self.item.parse(item, None, (*path, index), merge)
                for index, item in enumerate(value)
            ]
        else:
            hint = "; write it in brackets: [a, b]" if isinstance(value, (str, int, float)) else ""
            complaint = f"expected {self.name}, got {shown(value)}{hint}"
            return merge.report(path, complaint, WrongTypeError)
        if any(item is INVALID for item in items):
            return INVALID
        if self.keep_tuple and isinstance(value, tuple):
            return tuple(items)
        return self.container(items)

    def _patched(self, patch: ItemPatch, current: Any, path: Path, merge: "Merge") -> list[Any]:
        items = list(current) if isinstance(current, (list, tuple)) else []
        for index, value in sorted(patch.items()):
            if not 0 <= index <= len(items):
                message = f"no item {index}: the list has {len(items)}; the next new one is [{len(items)}]"
                return [merge.report((*path, index), message)]
            old = items[index] if index < len(items) else None
            items[index : index + 1] = [self.item.parse(value, old, (*path, index), merge)]
        return items

    def accepts_exactly(self, value: Any) -> bool:
        return type(value) is self.container and all(map(self.item.accepts_exactly, value))

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.json_schema()}


class FixedTuple(Type):
    """A tuple of a fixed number of items, each with a type of its own."""

    def __init__(self, items: tuple[Type, ...]):
        self.items = items
        self.name = f"a list of exactly {len(items)} items"

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        if isinstance(value, ItemPatch):
            items = list(current) if isinstance(current, (list, tuple)) else []
            for index, item in sorted(value.items()):
                if not 0 <= index < len(items):
                    return merge.report((*path, index), f"no such item: expected {self.name}")
                items[index] = self.items[index].parse(item, items[index], (*path, index), merge)
        elif isinstance(value, (list, tuple)):
            value = _split_numbers(value, self.items[0] if self.items else None, path, merge)
            if len(value) != len(self.items):
                complaint = f"expected {self.name}, got {shown(value)}"
                return merge.report(path, complaint, WrongTypeError)
            items = [
                kind.parse(item, None, (*path, index), merge)
                for index, (kind, item) in enumerate(zip(self.items, value, strict=True))
            ]
        else:
            complaint = f"expected {self.name}, got {shown(value)}"
            return merge.report(path, complaint, WrongTypeError)
        return INVALID if any(item is INVALID for item in items) else tuple(items)

    def accepts_exactly(self, value: Any) -> bool:
        return (
            type(value) is tuple
            and len(value) == len(self.items)
            and all(kind.accepts_exactly(item) for kind, item in zip(self.items, value))
        )

    def json_schema(self) -> dict[str, Any]:
        return {
            "type": "array",
            "prefixItems": [item.json_schema() for item in self.items],
            "minItems": len(self.items),
            "maxItems": len(self.items),
        }


class Dict(Type):
    """A mapping with free keys; an override merges into what is there."""

    def __init__(self, key: Type, item: Type):
        self.key, self.item = key, item
        self.name = f"a mapping to {item.name}"

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        if merge.is_config(value):
            value = value.as_dict()
        if not isinstance(value, Mapping) or isinstance(value, ItemPatch):
            return merge.report(path, f"expected {self.name}, got {shown(value)}", WrongTypeError)
        items = dict(current) if isinstance(current, Mapping) else {}
        for key, item in value.items():
            where = (*path, str(key))
            new_key = self.key.parse(key, None, where, merge)
            new = self.item.parse(item, items.get(new_key), where, merge)
            if new_key is INVALID or new is INVALID:
                return INVALID
            items[new_key] = new
        return items

    def accepts_exactly(self, value: Any) -> bool:
        return type(value) is dict and all(
            self.key.accepts_exactly(key) and self.item.accepts_exactly(item)
            for key, item in value.items()
        )

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.item.json_schema()}


class OneOf(Type):
    """A Union: the option that fits exactly, else the first that converts."""

    def __init__(self, options: tuple[Type, ...]):
        # A number in text is a number before it is text: `Union[str, float]` given "1e-3" keeps
        # text, as it fits exactly, but 5 for `Union[Sequence[str], str]` must still reach `str`.
        self.options = options
        names = [option.name for option in options]
        self.name = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"

    def parse(self, value: Any, current: Any, path: Path, merge: "Merge") -> Any:
        for option in self.options:
            if option.accepts_exactly(value):
                return option.parse(value, current, path, merge)
        fitting = [option for option in self.options if _may_hold(option, value)]
        if len(fitting) == 1:  # its own complaints say more than "none of these fits"
            return fitting[0].parse(value, current, path, merge)
        for option in fitting:
            trial = merge.trial()
            parsed = option.parse(value, current, path, trial)
            if not trial.problems:
                merge.accept(trial)
                return parsed
        return merge.report(path, f"expected {self.name}, got {shown(value)}", WrongTypeError)

    def accepts_exactly(self, value: Any) -> bool:
        return any(option.accepts_exactly(value) for option in self.options)

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [option.json_schema() for option in self.options]}


def _may_hold(option: Type, value: Any) -> bool:
    """Whether the option is of the value's general shape."""
    if isinstance(option, Anything):
        return True
    if isinstance(option, (List, FixedTuple)):
        return isinstance(value, (list, tuple, ItemPatch))
    if isinstance(option, (Nested, Dict)):
        return (isinstance(value, Mapping) and not isinstance(value, ItemPatch)) or hasattr(
            value, "as_dict"
        )
    if isinstance(option, Scalar) and option.annotation is type(None):
        return value is None
    return value is not None and not isinstance(value, (Mapping, list, tuple))


def _split_numbers(values: Any, item: Any, path: Path, merge: "Merge") -> Any:
    """Mends `[320 320, 3]`, a forgotten comma that YAML reads as the text '320 320'."""
    number = getattr(item, "annotation", None)
    if number not in (int, float) or all(not isinstance(value, str) for value in values):
        return values
    mended: list[Any] = []
    for index, value in enumerate(values):
        parts = value.split() if isinstance(value, str) else [value]
        try:
            numbers = [number(part) for part in parts]
        except (ValueError, TypeError, OverflowError):
            numbers = []
        if len(parts) > 1 and numbers:
            origin = merge.source.origin((*path, index))
            warnings.warn(
                f"{format_path(path)} ({origin}): a comma is missing in {value!r}; "
                f"read as {', '.join(map(str, numbers))}",
                ConfigWarning,
                stacklevel=2,
            )
            mended.extend(numbers)
        else:
            mended.append(value)
    return mended


def parse_type(annotation: Any, is_config_class: Any) -> Type:
    """The Type of an annotation; `is_config_class` tells which classes are configs."""
    recurse = functools.partial(parse_type, is_config_class=is_config_class)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any or annotation is object or isinstance(annotation, (str, typing.TypeVar)):
        return Anything()
    if is_config_class(annotation):
        return Nested(annotation)
    if origin is Union or origin is types.UnionType:
        return OneOf(tuple(map(recurse, args)))
    if annotation is None:
        return Scalar(type(None))
    container = origin or annotation
    if container is tuple:
        if not args:
            return List(Anything(), tuple)
        if len(args) == 2 and args[1] is Ellipsis:
            return List(recurse(args[0]), tuple)
        return FixedTuple(tuple(map(recurse, args)))
    if container in (list, collections.abc.MutableSequence):
        return List(recurse(args[0]) if args else Anything(), list)
    if container in (
        collections.abc.Sequence,
        collections.abc.Iterable,
        collections.abc.Collection,
    ):
        return List(recurse(args[0]) if args else Anything(), list, keep_tuple=True)
    if container in (dict, collections.abc.Mapping, collections.abc.MutableMapping):
        key, item = map(recurse, args or (str, Any))
        return Dict(key, item)
    return Scalar(annotation)
