"""What a config class knows about its fields, read from its annotations and defaults."""

import dataclasses
import inspect
import math
import re
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Optional

from hortus.hyperparams.bounds import NOT_FINITE
from hortus.hyperparams.errors import ConfigError
from hortus.hyperparams.types import Either, Number, Scalar, Type, parse_type

_CLASS_LEVEL = re.compile(r"(\w+\.)*(ClassVar|InitVar)\b")


@dataclasses.dataclass(frozen=True)
class FieldSpec:
    """One field of a config class."""

    name: str
    annotation: Any
    type: Type
    inert: Optional[str]
    """Why the field has no effect, or None for a field that has one."""
    empty: Any
    """What null stands for in a text or list that is empty by default; None where null is null, or
    is no value of the field."""


def is_class_level(annotation: Any) -> bool:
    """Whether an annotation, or its text, is a ClassVar or an InitVar: no field."""
    if isinstance(annotation, str):
        return _CLASS_LEVEL.match(annotation) is not None
    origin = typing.get_origin(annotation) or annotation
    is_init_var = origin is dataclasses.InitVar or isinstance(origin, dataclasses.InitVar)
    return origin is ClassVar or is_init_var


def field_specs(cls: type, is_config_class: Callable[[Any], bool]) -> dict[str, FieldSpec]:
    """The fields of a config class by name, in order.

    Raises:
        ConfigError: the class is not decorated, or a field has no default or a type that no file
            could hold.
    """
    if "__dataclass_fields__" not in cls.__dict__ and inspect.get_annotations(cls):
        raise ConfigError(f"{cls.__name__} has fields: decorate it with @dataclasses.dataclass")
    hints = _type_hints(cls, is_config_class)
    specs = {}
    for field in dataclasses.fields(cls):
        name, annotation = field.name, hints[field.name]
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{cls.__name__}.{name}: a field needs a default")
        try:
            kind = parse_type(annotation, is_config_class)
        except ConfigError as error:
            raise ConfigError(f"{cls.__name__}.{name}: {error}") from None
        default = field.default
        if annotation is float and isinstance(default, float) and not math.isfinite(default):
            kind = Number(float, NOT_FINITE)  # `limit: float = math.inf` says what it may be
        if field.default is None and not kind.accepts_exactly(None):
            kind = Either((kind, Scalar(type(None))))
        specs[name] = FieldSpec(
            name, annotation, kind, field.metadata.get("inert"), _empty(field, kind)
        )
    return specs


def _empty(field: dataclasses.Field, kind: Type) -> Any:
    if kind.accepts_exactly(None):
        return None
    if field.default_factory is list or field.default == ():
        return []
    return "" if field.default == "" else None


def _type_hints(cls: type, is_config_class: Callable[[Any], bool]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError):
        # `from __future__ import annotations`, and a name that only a function or a type checker
        # knows: that field's default must tell its type.
        return {field.name: _hint(cls, field, is_config_class) for field in dataclasses.fields(cls)}


def _hint(cls: type, field: dataclasses.Field, is_config_class: Callable[[Any], bool]) -> Any:
    for base in cls.__mro__:
        annotation = inspect.get_annotations(base).get(field.name)
        if annotation is not None:
            stand_in = type(base.__name__, (), {"__module__": base.__module__})
            stand_in.__annotations__ = {field.name: annotation}
            try:
                return typing.get_type_hints(stand_in, include_extras=True)[field.name]
            except (NameError, AttributeError, SyntaxError, TypeError):
                break
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    known = is_config_class(type(default)) or isinstance(default, (bool, int, float, str))
    return type(default) if known else Any
