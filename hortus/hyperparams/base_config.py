"""Config: a dataclass whose values are checked, overridable, lockable and know their origin."""

import copy
import dataclasses
import enum
import functools
import inspect
import json
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Optional, TypeVar, Union

from hortus.hyperparams import restrictions as restrictions_lib
from hortus.hyperparams.errors import (
    ConfigError,
    LockedError,
    Problem,
    RestrictionError,
    UnknownKeyError,
    did_you_mean,
    raise_problems,
    short,
)
from hortus.hyperparams.fields import FieldSpec, field_specs, is_class_level
from hortus.hyperparams.merge import Merge
from hortus.hyperparams.origin import CODE, DEFAULT, Origin
from hortus.hyperparams.path import Path, parse_path
from hortus.hyperparams.types import Nested

_MUTABLE = (list, dict, set)
_SIMPLE = (str, int, float, bool, type(None))
_ABSENT: Any = object()
_C = TypeVar("_C", bound="Config")
Restriction = Union[str, Callable[[Any], Union[str, bool, None]]]


def inert(default: Any, reason: str) -> Any:
    """A field that is loadable for the sake of existing files and has no effect.

    Its description says so, and setting it to another value warns once.
    """
    return _field(default, {"inert": reason})


def _field(default: Any, metadata: Optional[Mapping[str, Any]]) -> Any:
    """A dataclass field; of a mutable default each instance gets a copy."""
    if not isinstance(default, (Config, *_MUTABLE)):
        return dataclasses.field(default=default, metadata=metadata)
    factory = list if default == [] else functools.partial(copy.deepcopy, default)
    return dataclasses.field(default_factory=factory, metadata=metadata)


@dataclasses.dataclass
class Config:
    """Base of every config: a dataclass whose values are checked by their annotation.

        @dataclasses.dataclass
        class Head(hyperparams.Config):
            num_convs: int = 4
            norm: NormActivation = NormActivation()   # each instance gets its own copy

    A bare `Config({...})` is open: it takes any keys, and nested mappings become configs too.

    Args:
        default_params: overrides to start from.
        restrictions: rules for `validate`, such as `'model.min_level <= model.max_level'`, or
            functions that take the config and return a message, or whether the rule holds.
    """

    default_params: dataclasses.InitVar[Optional[Mapping[str, Any]]] = None
    restrictions: dataclasses.InitVar[Optional[Sequence[Restriction]]] = None

    # What an instance has of private state unless it is set.
    _locked: ClassVar[bool] = False
    _ready: ClassVar[bool] = False
    _extras: ClassVar[tuple[str, ...]] = ()
    _origins: ClassVar[Mapping[str, Origin]] = types.MappingProxyType({})
    _restrictions: ClassVar[tuple[Restriction, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        annotations = inspect.get_annotations(cls)
        for name, annotation in annotations.items():
            if name in _RESERVED or inspect.isroutine(getattr(super(cls, cls), name, None)):
                raise ConfigError(f"{cls.__name__}.{name}: a field cannot be named like a method")
            value: Any = cls.__dict__.get(name)
            is_field = isinstance(value, dataclasses.Field)
            default = value.default if is_field else value
            if isinstance(default, (Config, *_MUTABLE)) and not is_class_level(annotation):
                # `model: X = X()`, which dataclasses refuse.
                setattr(cls, name, _field(default, value.metadata if is_field else None))
        for field in dataclasses.fields(cls):  # those of the bases, at this point
            if field.name in cls.__dict__ and field.name not in annotations:
                raise ConfigError(
                    f"{cls.__name__}.{field.name}: a new default needs the annotation too"
                )
        # Dataclasses would make their own for each class.
        for name in ("__eq__", "__repr__"):
            if name not in cls.__dict__:
                setattr(cls, name, getattr(cls, name))

    def __post_init__(
        self,
        default_params: Optional[Mapping[str, Any]],
        restrictions: Optional[Sequence[Restriction]],
    ) -> None:
        type(self)._fields()
        if restrictions:
            rules = (restrictions,) if isinstance(restrictions, str) else tuple(restrictions)
            self.__dict__["_restrictions"] = rules
        if default_params is not None:
            if not isinstance(default_params, Mapping):
                raise ConfigError(
                    f"{type(self).__name__}: the first argument is a mapping of overrides, got "
                    f"{short(default_params)}; pass fields by name"
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
            specs = field_specs(cls, _is_config_class)
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
        """Sets a value that a Merge has checked."""
        if key not in type(self)._fields() and key not in self._extras:
            self.__dict__["_extras"] = (*self._extras, key)
        self.__dict__[key] = value
        if self._ready or origin is not CODE:
            self._mark(key, origin)

    def _mark(self, key: str, origin: Origin) -> None:
        # A new mapping, as a shallow copy of this config may share the old one.
        self.__dict__["_origins"] = {**self._origins, key: origin}

    def __setattr__(self, key: str, value: Any) -> None:
        spec = type(self)._fields().get(key)
        if not self._ready and spec is not None and spec.type.accepts_exactly(value):
            objection = self._objection(key, value, {})
            if objection:
                raise ConfigError(f"{type(self).__name__}.{key}: {objection}")
            self.__dict__[key] = value.copy() if type(value) in (list, dict) else value
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
        if not isinstance(other, Config) or type(self) is not type(other):
            return NotImplemented
        return self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        body = ", ".join(f"{key}={self.__dict__[key]!r}" for key in self._keys())
        return f"{type(self).__name__}({body})"

    def __deepcopy__(self: _C, memo: dict) -> _C:
        new = object.__new__(type(self))
        memo[id(self)] = new
        for key, value in self.__dict__.items():
            is_shared = type(value) in _SIMPLE or key in ("_origins", "_restrictions")
            new.__dict__[key] = value if is_shared else copy.deepcopy(value, memo)
        return new

    # ---- reading ----------------------------------------------------------------------------

    def get(self, path: str, default: Any = None) -> Any:
        """The value at a dotted path such as `task.heads[0].size`, or `default`."""
        value: Any = self
        for part in (path,) if path in self else parse_path(path) or (path,):
            value = _item(value, part)
            if value is _ABSENT:
                return default
        return value

    def as_dict(self) -> dict[str, Any]:
        """Nested plain data, in the order of the fields; of a OneOfConfig the chosen branch."""
        return {key: _plain(self.__dict__[key]) for key in self._visible_keys()}

    def to_yaml(self) -> str:
        """YAML text that `override` and `from_yaml` read back."""
        from hortus.hyperparams.yaml_text import dump_yaml

        return dump_yaml(self.as_dict())

    def to_json(self, indent: Optional[int] = 2) -> str:
        """JSON text that `override` and `from_json` read back."""
        try:
            return json.dumps(self.as_dict(), indent=indent)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"cannot be written as JSON: {error}") from None

    def origin(self, path: str) -> Origin:
        """Where the value at a dotted path came from."""
        value: Any = self
        owner, name = self, ""
        for part in (path,) if path in self else parse_path(path) or (path,):
            if isinstance(value, Config):
                owner, name = value, str(part)
            value = _item(value, part)
        if value is _ABSENT:
            raise UnknownKeyError(f"{path}: no such field")
        return owner._origins.get(name, DEFAULT)

    def stamp(self, origin: Origin, default: Optional["Config"] = None) -> None:
        """Says where every value is from that code set, or that differs from the defaults."""
        default = default if type(default) is type(self) else type(self)()
        for key in self._keys():
            value, usual = self.__dict__[key], default.__dict__.get(key)
            if isinstance(value, Config):
                value.stamp(origin, usual)
            else:
                for child in _configs_in(value):
                    child.stamp(origin)
            known = self._origins.get(key)
            if known == CODE or (known is None and value != usual):
                self._mark(key, origin)

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
            raise ConfigError(f"overrides are a mapping or a config, got {short(override_params)}")
        merge.into(self, override_params)
        merge.commit()

    def replace(self: _C, **changes: Any) -> _C:
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
            if self.__dict__[key] is None and self._needs(key):
                origin = self.origin(key)
                message = "must not be null; leave it out for its defaults"
                yield Problem((*path, key), message, str(origin), RestrictionError)
            for where, child in _children(self.__dict__[key], (*path, key)):
                yield from child._problems(where)

    @classmethod
    def _needs(cls, key: str) -> bool:
        """Whether a field is a nested config that is not marked as optional."""
        spec = cls._fields().get(key)
        return spec is not None and not spec.inert and isinstance(spec.type, Nested)

    def _complaint(self, path: Path, message: str) -> Problem:
        """What `check` found; a message that starts with a field's name tells where it was set."""
        name, _, rest = message.partition(" ")
        if name not in self:
            return Problem(path, message, kind=RestrictionError)
        origin = self.origin(name)
        where = None if origin == DEFAULT else str(origin)
        text = rest if rest.startswith("must ") else message
        return Problem((*path, name), text, where, RestrictionError)

    # ---- making -----------------------------------------------------------------------------

    @classmethod
    def from_yaml(cls: type[_C], file_path: Union[str, "os.PathLike[str]"]) -> _C:
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
    def from_args(cls: type[_C], *args: Any, **kwargs: Any) -> _C:
        """A config from values in the order of its fields, or by name."""
        names = list(cls._fields())
        if len(args) > len(names):
            raise ConfigError(f"{cls.__name__} has {len(names)} fields, got {len(args)} values")
        values = dict(zip(names, args, strict=False))
        twice = values.keys() & kwargs.keys()
        if twice:
            raise ConfigError(f"{cls.__name__}: two values for {', '.join(sorted(twice))}")
        return cls({**values, **kwargs})


_RESERVED = frozenset(name for name in vars(Config) if not name.startswith("__"))

# The dataclass leaves the InitVars' defaults on the class. Better: what the argument was.
Config.restrictions = property(lambda self: self._restrictions)  # type: ignore[attr-defined]


def _is_config_class(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Config)


def _item(value: Any, part: Union[str, int]) -> Any:
    """One step of a path into a config, list or mapping; _ABSENT when it leads nowhere."""
    if isinstance(value, Config):
        return value.__dict__[part] if isinstance(part, str) and part in value else _ABSENT
    if isinstance(value, (list, tuple)) and isinstance(part, int):
        return value[part] if part < len(value) else _ABSENT
    if isinstance(value, dict):
        return value.get(part, _ABSENT)
    return _ABSENT


def _plain(value: Any) -> Any:
    if type(value) in _SIMPLE:
        return value
    if isinstance(value, Config):
        return value.as_dict()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
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
