"""A user's own modules: imported by name for what they register, and remembered for the record."""

import importlib
import re
import sys
from collections.abc import Iterable

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_asked: dict[str, None] = {}


def load(name: str) -> None:
    """Imports a module that the user asked for, and remembers that."""
    importlib.import_module(name)
    _asked[name] = None


def asked() -> list[str]:
    """The modules that the user asked for so far."""
    return list(_asked)


def foreign(names: Iterable[str]) -> list[str]:
    """Those names of modules that are neither of hortus nor of Python itself; each once."""
    own = (*sys.stdlib_module_names, "hortus", "__main__")
    return [name for name in dict.fromkeys(names) if name.partition(".")[0] not in own]


def file_of(name: str) -> str:
    """The file that a loaded module is from; empty where there is none."""
    return getattr(sys.modules.get(name), "__file__", None) or ""


def is_name(text: object) -> bool:
    """Whether a text can name a user's module, not one of hortus or of Python itself."""
    return isinstance(text, str) and bool(_NAME.fullmatch(text)) and foreign([text]) == [text]


def is_own(text: str) -> bool:
    """Whether a text can name a module of hortus."""
    return bool(_NAME.fullmatch(text)) and text.partition(".")[0] == "hortus"
