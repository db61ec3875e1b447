"""Packages whose modules are imported when one of their names is first used.

    if typing.TYPE_CHECKING:
        from hortus.core.checkpoints.checkpoint import Checkpoint as Checkpoint

    __getattr__, __dir__, __all__ = lazy.attach(__name__)

What is imported for type checkers is the one list of the names: editors complete them, and `attach`
reads the same lines. `X as X` tells that a name is there for others.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Optional


class Lazy(NamedTuple):
    """What a package assigns to its names of the same meaning."""

    getattr: Callable[[str], Any]
    dir: Callable[[], list[str]]
    all: list[str]


def attach(package: str, before: Optional[Callable[[], Any]] = None) -> Lazy:
    """Makes the names that a package imports for type checkers importable, without doing it yet.

    Args:
        package: its `__name__`.
        before: called before something is imported, each time.
    """
    where = _names(package)

    def getattr_(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if before is not None:
            before()
        module, original = where[name]
        if module == package:  # the name of a module
            return importlib.import_module(f"{package}.{original}")
        return getattr(importlib.import_module(module), original)

    def dir_() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return Lazy(getattr_, dir_, sorted(where))


def _names(package: str) -> dict[str, tuple[str, str]]:
    """Module and name there, by the name here, of all imports below `if TYPE_CHECKING:`."""
    spec = sys.modules[package].__spec__
    source = spec and getattr(spec.loader, "get_source", lambda name: None)(package)
    if not source:
        raise ImportError(f"{package}: its source is needed, which lists what it has")
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test).endswith("TYPE_CHECKING")
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
