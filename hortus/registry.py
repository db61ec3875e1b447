"""Registries: a dict with manners, the one kind that all extension points have.

Registering a name twice raises; looking up a name that is not there says which names are near and
which modules have registered anything, because the usual cause is a module that nobody imported.

    _BUILDERS = registry.Registry("backbone")

    @registry.register(_BUILDERS, "resnet")
    def build_resnet(...): ...

    build = registry.lookup(_BUILDERS, "resnet")

Where a config's class chooses, and not a name, the class is the key: `lookup_for` finds what is
registered for it, or for the nearest of its bases.
"""

import importlib
import pkgutil
import types
from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

from hortus import hyperparams

_T = TypeVar("_T")


class RegistryError(KeyError):
    """A name that is registered twice, or not at all. A `LookupError`."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument; this is a finished sentence.
        return str(self.args[0]) if self.args else ""


class Registry(dict[Any, Any]):
    """Names (or classes) to what is registered under them.

    Attributes:
        noun: What one entry is, for messages: "experiment", "backbone".
        package: Where our own entries are. Its modules are imported when a name is not known yet,
            so that a new file is enough: there is no list to keep beside it.
    """

    def __init__(self, noun: str, package: str = "") -> None:
        super().__init__()
        self.noun, self.package = noun, package

    def load(self) -> None:
        """Imports the modules of the package, so that all of our own entries are known."""
        if self.package:
            import_all(self.package)


def register(collection: MutableMapping[Any, Any], key: Any) -> Callable[[_T], _T]:
    """Returns a decorator that puts a function or class into `collection` under `key`.

    Args:
        collection: A `Registry`, or any dict.
        key: A name, or a class that stands for itself.

    Raises:
        RegistryError: `key` is taken. Raised when the decorator is applied.
    """

    def decorator(item: _T) -> _T:
        if key in collection:
            raise RegistryError(
                f"{_noun(collection)} {_show(key)} is registered twice: first by "
                f"{_where(collection[key])}, then by {_where(item)}. Give one of them another name."
            )
        collection[key] = item
        return item

    return decorator


def lookup(collection: MutableMapping[Any, Any], key: Any) -> Any:
    """Returns what is registered under `key`.

    Raises:
        RegistryError: nothing is; the message names near keys and the modules that registered.
    """
    if key not in collection and isinstance(collection, Registry):
        collection.load()
    try:
        return collection[key]
    except KeyError:
        raise RegistryError(_missing(collection, key)) from None


def lookup_for(collection: MutableMapping[Any, Any], cls: type) -> Any:
    """Returns what is registered for a class, or for the nearest of its bases that has something.

    Raises:
        RegistryError: nothing is, for the class or for a base of it.
    """
    if find_for(collection, cls) is None and isinstance(collection, Registry):
        collection.load()
    found = find_for(collection, cls)
    return lookup(collection, cls) if found is None else found


def find_for(collection: MutableMapping[Any, Any], cls: type) -> Any:
    """As `lookup_for`, but None where nothing is registered."""
    return next((collection[base] for base in cls.__mro__ if base in collection), None)


def summary(item: Any) -> str:
    """The first line of what an item says of itself; empty where it says nothing."""
    return (getattr(item, "__doc__", None) or "").strip().split("\n")[0]


def import_all(package: str) -> list[types.ModuleType]:
    """Imports every module of a package but its tests, and returns them."""
    path = importlib.import_module(package).__path__
    names = sorted(module.name for module in pkgutil.iter_modules(path))
    return [
        importlib.import_module(f"{package}.{name}")
        for name in names
        if name != "conftest" and not name.endswith("_test")
    ]


def _missing(collection: MutableMapping[Any, Any], key: Any) -> str:
    noun = _noun(collection)
    names = {_name(known): known for known in collection}
    near = hyperparams.near_names(_name(key), names)
    message = f"unknown {noun} {_show(key)}"
    if near:
        message += "; did you mean " + " or ".join(_show(names[name]) for name in near) + "?"
    modules = sorted({getattr(item, "__module__", "?") for item in collection.values()})
    if not modules:
        message += f"\n  No {noun} is registered yet: import the module that does it."
    else:
        message += (
            f"\n  Registered: {len(collection)}, by {', '.join(modules)}."
            "\n  Your own is registered when its module is imported."
        )
    return message


def _noun(collection: MutableMapping[Any, Any]) -> str:
    return getattr(collection, "noun", "name")


def _name(key: Any) -> str:
    return key.__name__ if isinstance(key, type) else str(key)


def _show(key: Any) -> str:
    return key.__qualname__ if isinstance(key, type) else repr(key)


def _where(item: Any) -> str:
    name = getattr(item, "__qualname__", repr(item))
    return f"{getattr(item, '__module__', '?')}.{name}"
