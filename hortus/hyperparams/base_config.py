"""Config: a dataclass whose values are checked, overridable, lockable and know their origin."""

import copy
import dataclasses
import functools
import inspect
import json
import os
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from hortus.hyperparams import restrictions as restrictions_lib
from hortus.hyperparams.errors import (
    ConfigError,
    ConfigWarning,
    LockedError,
    Path,
    Problem,
    RestrictionError,
    UnknownKeyError,
    did_you_mean,
    raise_problems,
)
from hortus.hyperparams.merge import Merge
from hortus.hyperparams.origin import CODE, DEFAULT, Origin
from hortus.hyperparams.types import OneOf, Scalar, Type, parse_type

_MUTABLE = (list, dict, set)


@dataclasses.dataclass(frozen=True)
class FieldSpec:
    """What a config class knows about one of its fields."""

    name: str
    annotation: Any
    type: Type
    inert: Optional[str]
    """Why the field has no effect, or None for a field that has one."""


def inert(default: Any, reason: str) -> Any:
    """A field that is loadable for the sake of existing files and has no effect.

    Its description says so, and setting it to another value than `default` warns once.
    """
    metadata = {"inert": reason}
    if isinstance(default, _MUTABLE):
        factory = functools.partial(copy.deepcopy, default)
        return dataclasses.field(default_factory=factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass
class Config:
    """Base of every config. Subclasses are dataclasses:

        @dataclasses.dataclass
        class Head(hyperparams.Config):
            num_convs: int = 4
            norm: NormActivation = NormActivation()   # each instance gets its own copy

    Values are checked and converted by their annotation when set, in code or from files and flags.
    A bare `Config({...})` is open: it takes any keys, and nested mappings become configs too.

    Args:
        default_params: overrides to start from.
        restrictions: rules for `validate`, such as `'task.model.min_level <= task.model.max_level'`,
            or functions from the config to a message or None.
    """

    default_params: dataclasses.InitVar[Optional[Mapping[str, Any]]] = None
    restrictions: dataclasses.InitVar[Optional[Sequence[Union[str, Callable]]]] = None

    # Class-level defaults of the private state; none of them is annotated, so none is a field.
    _open = True
    _locked = False
    _ready = False
    _extras = frozenset()  # type: ignore[var-annotated]
    _restrictions = ()  # type: ignore[var-annotated]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in inspect.get_annotations(cls):
            if name in _RESERVED:
                raise ConfigError(f"{cls.__name__}.{name}: a field cannot be named like a method")
            value = cls.__dict__.get(name)
            default = value.default if isinstance(value, dataclasses.Field) else value
            if isinstance(default, (Config, *_MUTABLE)):
                # `model: X = X()`: dataclasses refuse a mutable default, a copy per instance is safe.
                metadata = value.metadata if isinstance(value, dataclasses.Field) else None
                factory = functools.partial(copy.deepcopy, default)
                setattr(cls, name, dataclasses.field(default_factory=factory, metadata=metadata))
        # Ours hold for every subclass: dataclasses leave methods that they find in the class.
        cls.__eq__ = Config.__eq__  # type: ignore[method-assign]
        cls.__hash__ = None  # type: ignore[assignment]

    def __post_init__(
        self,
        default_params: Optional[Mapping[str, Any]],
        restrictions: Optional[Sequence[Union[str, Callable]]],
    ) -> None:
        type(self)._fields()
        self.__dict__["_restrictions"] = list(restrictions or ())
        if default_params is not None:
            if not isinstance(default_params, Mapping):
                raise ConfigError(
                    f"{type(self).__name__}: the first argument is a mapping of overrides, got "
                    f"{default_params!r}; pass fields by name"
                )
            merge = Merge(Config)
            merge.into(self, default_params, is_new=True)
            merge.commit()
        self.__dict__["_ready"] = True

    # ---- fields -----------------------------------------------------------------------------

    @classmethod
    def _fields(cls) -> dict[str, FieldSpec]:
        specs = cls.__dict__.get("_field_specs")
        if specs is None:
            specs = _field_specs(cls)
            cls._field_specs = specs  # type: ignore[attr-defined]
        return specs

    def _keys(self) -> list[str]:
        """All keys: the declared fields, then those that were added."""
        return [*type(self)._fields(), *self._extras]

    def _visible_keys(self) -> list[str]:
        """The keys that matter for the config as it stands: what `as_dict` exports."""
        return self._keys()

    def _objection(self, key: str, value: Any, siblings: Mapping[str, Any]) -> Optional[str]:
        """What speaks against a value of the right type; None for nothing.

        `siblings` are the values that are being set together with it.
        """
        return None

    def check(self) -> Iterator[str]:
        """Yields what is inconsistent within this config; override it. Run by `validate`."""
        yield from ()

    def _store(self, key: str, value: Any, origin: Origin) -> None:
        spec = type(self)._fields().get(key)
        if spec is None and key not in self._extras:
            if origin is not CODE or self._ready:
                # An added key of a bare Config is its nature; of a typed one it may be a slip.
                if "_open" not in vars(type(self)):
                    message = f"{key!r} ({origin}) is no field of {type(self).__name__}; added"
                    warnings.warn(message, ConfigWarning, stacklevel=4)
            self.__dict__["_extras"] = (*self._extras, key)
        if spec is not None and spec.inert and self._ready and value != self.__dict__.get(key):
            message = f"{type(self).__name__}.{key} ({origin}) has no effect: {spec.inert}"
            warnings.warn(message, ConfigWarning, stacklevel=4)
        self.__dict__[key] = value
        if self._ready or origin is not CODE:
            self.__dict__.setdefault("_origins", {})[key] = origin

    def __setattr__(self, key: str, value: Any) -> None:
        spec = type(self)._fields().get(key)
        if not self._ready and spec is not None and spec.type.accepts_exactly(value):
            objection = self._objection(key, value, {})
            if objection:
                raise ConfigError(f"{type(self).__name__}.{key}: {objection}")
            self.__dict__[key] = value
        elif spec is not None or key in self._extras:
            merge = Merge(Config)
            merge.into(self, {key: value})
            merge.commit()
        elif key.startswith("_") or isinstance(getattr(type(self), key, None), property):
            object.__setattr__(self, key, value)
        else:
            near = did_you_mean(key, self._keys())
            hint = " override(..., is_strict=False) adds a key." if not near else ""
            raise UnknownKeyError(f"{type(self).__name__} has no field {key!r}.{near}{hint}")

    def __getattr__(self, key: str) -> Any:  # only reached when there is no such attribute
        if key.startswith("_"):
            raise AttributeError(key)
        near = did_you_mean(key, self._keys())
        raise AttributeError(f"{type(self).__name__} has no field {key!r}.{near}")

    def __delattr__(self, key: str) -> None:
        if self._locked:
            raise LockedError(f"{key}: the config is locked")
        if key not in self._extras:
            raise UnknownKeyError(f"{key}: a field of {type(self).__name__} cannot be deleted")
        self.__dict__["_extras"] = tuple(extra for extra in self._extras if extra != key)
        del self.__dict__[key]

    def __contains__(self, key: str) -> bool:
        return key in self._keys()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.as_dict() == other.as_dict()  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        body = ", ".join(f"{key}={self.__dict__[key]!r}" for key in self._keys())
        return f"{type(self).__name__}({body})"

    def __deepcopy__(self, memo: dict) -> "Config":
        new = object.__new__(type(self))
        memo[id(self)] = new
        for key, value in self.__dict__.items():
            simple = isinstance(value, (str, int, float, type(None)))
            new.__dict__[key] = value if simple else copy.deepcopy(value, memo)
        return new

    # ---- reading ----------------------------------------------------------------------------

    def get(self, path: str, default: Any = None) -> Any:
        """The value at a dotted path, or `default` where there is none."""
        value: Any = self
        for name in path.split("."):
            if not isinstance(value, Config) or name not in value:
                return default
            value = value.__dict__[name]
        return value

    def as_dict(self) -> dict[str, Any]:
        """Nested plain data, in the order of the fields; of a OneOfConfig the chosen branch."""
        return {key: _plain(self.__dict__[key]) for key in self._visible_keys()}

    def to_yaml(self) -> str:
        """YAML text that `override` and `from_yaml` read back."""
        from hortus.hyperparams.overrides import dump_yaml

        return dump_yaml(self.as_dict())

    def origin(self, path: str) -> Origin:
        """Where the value at a dotted path came from."""
        parent, _, name = path.rpartition(".")
        owner = self.get(parent) if parent else self
        if not isinstance(owner, Config) or name not in owner:
            raise UnknownKeyError(f"{path}: no such field")
        return owner.__dict__.get("_origins", {}).get(name, DEFAULT)

    def stamp(self, origin: Origin, default: Optional["Config"] = None) -> None:
        """Says where every value is from that code set, or that differs from the defaults."""
        default = default if type(default) is type(self) else type(self)()
        for key in self._keys():
            value, usual = self.__dict__[key], default.__dict__.get(key)
            if isinstance(value, Config):
                value.stamp(origin, usual)
            for child in _configs_in(value) if not isinstance(value, Config) else ():
                child.stamp(origin)
            origins = self.__dict__.setdefault("_origins", {})
            known = origins.get(key)
            if known == CODE or (known is None and value != usual):
                origins[key] = origin

    # ---- changing ---------------------------------------------------------------------------

    def override(self, override_params: Any, is_strict: bool = True) -> None:
        """Merges a mapping, a config, `Overrides`, or text in any of their notations.

        All of it is applied, or nothing: an error names every problem with path and origin.

        Args:
            override_params: what to change.
            is_strict: an unknown key is an error; otherwise it is added, with a warning.
        """
        from hortus.hyperparams.overrides import Overrides, parse_overrides

        if isinstance(override_params, str):
            override_params = parse_overrides(override_params)
        merge = Merge(Config, is_strict=is_strict)
        if isinstance(override_params, Overrides):
            merge.source, override_params = override_params, override_params.values
        elif isinstance(override_params, Config):
            override_params = override_params.as_dict()
        if not isinstance(override_params, Mapping):
            raise ConfigError(f"overrides are a mapping or a config, got {override_params!r}")
        merge.into(self, override_params)
        merge.commit()

    def replace(self, **changes: Any) -> "Config":
        """An unlocked copy with some fields changed."""
        new = copy.deepcopy(self)
        for config in _configs_in(new):
            config.__dict__["_locked"] = False
        new.override(changes)
        return new

    def lock(self) -> None:
        """Forbids every further change, of nested configs too."""
        for config in _configs_in(self):
            config.__dict__["_locked"] = True

    # ---- checking ---------------------------------------------------------------------------

    def validate(self) -> None:
        """Checks the restrictions and the `check` of this config and of all nested ones."""
        raise_problems(list(self._problems(())))

    def _problems(self, path: Path) -> Iterator[Problem]:
        for restriction in self._restrictions:
            message = restrictions_lib.violation(restriction, self)
            if message:
                yield Problem(path, message, kind=RestrictionError)
        for message in self.check():
            yield self._complaint(path, message)
        for key in self._visible_keys():
            for where, child in _children(self.__dict__[key], (*path, key)):
                yield from child._problems(where)

    def _complaint(self, path: Path, message: str) -> Problem:
        """What `check` found; a message that starts with a field's name tells where it was set."""
        name, _, rest = message.partition(" ")
        if name not in self._keys():
            return Problem(path, message, kind=RestrictionError)
        origin = self.origin(name)
        where = None if origin == DEFAULT else str(origin)
        text = rest if rest.startswith("must ") else message
        return Problem((*path, name), text, where, RestrictionError)

    # ---- making -----------------------------------------------------------------------------

    @classmethod
    def from_yaml(cls, file_path: Union[str, "os.PathLike[str]"]) -> "Config":
        """A config from a YAML (or JSON) file."""
        from hortus.hyperparams.overrides import load_overrides

        overrides = load_overrides(file_path)
        new = cls()
        merge = Merge(Config, overrides)
        merge.into(new, overrides.values, is_new=True)
        merge.commit()
        return new

    from_json = from_yaml

    @classmethod
    def from_args(cls, *args: Any, **kwargs: Any) -> "Config":
        """A config from values in the order of its fields, or by name."""
        names = list(cls._fields())
        if len(args) > len(names):
            raise ConfigError(f"{cls.__name__} has {len(names)} fields, got {len(args)} values")
        return cls({**dict(zip(names, args)), **kwargs})

    def to_json(self, indent: Optional[int] = 2) -> str:
        return json.dumps(self.as_dict(), indent=indent)


_RESERVED = frozenset(
    name for name in vars(Config) if not name.startswith("_") and callable(getattr(Config, name))
)


def _field_specs(cls: type[Config]) -> dict[str, FieldSpec]:
    if "__dataclass_fields__" not in cls.__dict__ and inspect.get_annotations(cls):
        raise ConfigError(f"{cls.__name__} has fields: decorate it with @dataclasses.dataclass")
    hints = _type_hints(cls)
    specs = {}
    for field in dataclasses.fields(cls):
        annotation = hints[field.name]
        kind = _TYPES.get(annotation) if _is_hashable(annotation) else None
        if kind is None:
            kind = parse_type(annotation, _is_config_class)
            if _is_hashable(annotation):
                _TYPES[annotation] = kind
        if field.default is None and not kind.accepts_exactly(None):
            kind = OneOf((kind, Scalar(type(None))))
        specs[field.name] = FieldSpec(field.name, annotation, kind, field.metadata.get("inert"))
    return specs


_TYPES: dict[Any, Type] = {}


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_config_class(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Config)


def _type_hints(cls: type[Config]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError:
        # A class inside a function, its annotations kept as text: what the default tells must do.
        hints = {}
        for field in dataclasses.fields(cls):
            default = field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            known = isinstance(default, (Config, bool, int, float, str))
            is_text = isinstance(field.type, str)
            hints[field.name] = (type(default) if known else Any) if is_text else field.type
        return hints


def _plain(value: Any) -> Any:
    if isinstance(value, Config):
        return value.as_dict()
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _children(value: Any, path: Path) -> Iterator[tuple[Path, Config]]:
    """The nearest configs in a value: itself, or those in its lists and mappings."""
    if isinstance(value, Config):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _children(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _children(item, (*path, str(key)))


def _configs_in(value: Any) -> Iterator[Config]:
    """All configs in a value, unselected branches included."""
    for _, child in _children(value, ()):
        yield child
        for key in child._keys():
            yield from _configs_in(child.__dict__[key])
