"""Overrides from files and text: YAML, JSON, and `a.b.c=v,d.e=[1, 2]`."""

import os
from typing import Any, Union

from hortus.hyperparams.assignments import are_assignments, read_assignments
from hortus.hyperparams.errors import ConfigError, near_names, short
from hortus.hyperparams.json_text import read_json
from hortus.hyperparams.origin import Origin
from hortus.hyperparams.path import Path
from hortus.hyperparams.yaml_text import dump_yaml, read_yaml

__all__ = ["Overrides", "dump_yaml", "load_overrides", "override_params_dict", "parse_overrides"]

_MAX_CHARACTERS = 4_000_000
"""More than any config has: some other file was named by mistake."""


class Overrides:
    """Nested values, with the place where each was written."""

    def __init__(self, values: dict, origins: dict[Path, Origin], origin: Origin):
        self.values = values
        self._origins = origins
        self._origin = origin

    def origin(self, path: Path) -> Origin:
        """Of the value at `path`, or of the nearest enclosing one that is known."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._origins:
                return self._origins[path[:length]]
        return self._origin

    def __repr__(self) -> str:
        return f"Overrides({self.values!r} from {self._origin})"


def load_overrides(file_path: Union[str, "os.PathLike[str]"]) -> Overrides:
    """Reads a YAML or JSON file.

    Raises:
        ConfigError: there is no such file, or it cannot be read; names file and line.
    """
    name = os.fspath(file_path)
    if "://" in name:
        raise ConfigError(f"{name}: only files of this machine are read; copy it here first")
    try:
        with open(name, encoding="utf-8-sig") as file:
            text = file.read(_MAX_CHARACTERS + 1)
    except FileNotFoundError:
        raise ConfigError(f"{name}: no such file{_near_files(name)}") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"{name}: cannot be read: {reason}") from None
    except ValueError:  # not UTF-8, or a NUL in the name
        raise ConfigError(f"{name}: not a text file in UTF-8; expected YAML or JSON") from None
    if len(text) > _MAX_CHARACTERS:
        raise ConfigError(f"{name}: too large for a config")
    read = read_json if name.endswith(".json") else read_yaml
    return _overrides(*read(text, Origin(name), with_lines=True), Origin(name))


def parse_overrides(text: str, origin: Union[str, Origin] = "override") -> Overrides:
    """Reads YAML text, JSON text, or assignments: `a.b=1,c[0].d='x, y',e=[1, 2]`.

    Raises:
        ConfigError: it is none of them.
    """
    origin = Origin(origin) if isinstance(origin, str) else origin
    if are_assignments(text):
        return Overrides(read_assignments(text, origin), {}, origin)
    if text.lstrip().startswith("{"):
        try:
            return _overrides(*read_json(text, origin, with_lines=False), origin)
        except ConfigError:
            pass  # {a: 1} is YAML, and so is most of JSON
    return _overrides(*read_yaml(text, origin, with_lines=False), origin)


def override_params_dict(params: Any, overrides: Any, is_strict: bool = True) -> Any:
    """Overrides `params` by a mapping, a config, text, or the path of a YAML or JSON file."""
    if isinstance(overrides, (str, os.PathLike)):
        name = os.fspath(overrides)
        is_file = name.endswith((".yaml", ".yml", ".json")) and "=" not in name
        overrides = load_overrides(name) if is_file else parse_overrides(name)
    params.override(overrides, is_strict)
    return params


def _overrides(values: Any, origins: dict[Path, Origin], origin: Origin) -> Overrides:
    if not isinstance(values, dict):
        got = "a list" if isinstance(values, (list, tuple)) else short(values)
        raise ConfigError(f"{origin}: expected keys with values (task: ...), got {got}")
    return Overrides(values, origins, origin)


def _near_files(name: str) -> str:
    folder, base = os.path.split(name)
    try:
        near = near_names(base, sorted(os.listdir(folder or "."))[:1000])
    except (OSError, ValueError):
        return f"; the folder {folder!r} does not exist" if folder else ""
    listed = " or ".join(os.path.join(folder, one) for one in near)
    return f". Did you mean {listed}?" if listed else ""
