"""Modules that are imported for what they register: those of hortus, and a user's own."""

import importlib
import os
import sys
from collections.abc import Sequence

import hortus
from hortus.cli.errors import CommandError
from hortus.core import user_modules


def load(modules: Sequence[str]) -> None:
    """Imports the experiments of hortus, what HORTUS_IMPORT names (a,b), and `modules`.

    Of hortus only the configs are loaded, no task and no numerical library. Modules in the current
    folder are found, as with `python -m`.

    Raises:
        CommandError: one of them cannot be imported.
    """
    importlib.import_module("hortus.vision.experiments")
    asked = [("HORTUS_IMPORT", name) for name in named_by_environment()]
    asked += [("--import", name) for name in modules]
    if asked and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for source, name in asked:
        try:
            user_modules.load(name)
        except Exception as error:
            raise CommandError(f"{source} {name}: {_explain(name, error)}") from error


def named_by_environment() -> list[str]:
    """The modules that HORTUS_IMPORT names."""
    names = [name.strip() for name in os.environ.get("HORTUS_IMPORT", "").split(",")]
    return [name for name in names if name]


def _explain(name: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == name.split(".")[0]:
        hint = ""
        if name.endswith(".py") or os.sep in name:
            dotted = name.removesuffix(".py").strip("./").replace(os.sep, ".")
            hint = f"; a module is named without folder and ending: {dotted}"
        return f"there is no such module in {os.getcwd()} or the Python path{hint}"
    return f"{type(error).__name__}: {error}{_line(error)}"


def _line(error: Exception) -> str:
    """Where in the user's code it happened."""
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append((code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    here = os.path.dirname(hortus.__file__)
    own = [f for f in frames if "importlib" not in f[0] and not f[0].startswith(here)]
    return f" ({own[0][0]}:{own[0][1]})" if own else ""
