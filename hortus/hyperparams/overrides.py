"""Overrides from files and text: YAML, JSON, and `a.b.c=v,d.e=[1, 2]`.

YAML is read with the safe tags only, by the rules of YAML 1.2 for plain words: `1e-3` is a number,
`off` is text. Every value keeps the line that it stands on.
"""

import json
import os
import re
import warnings
from collections.abc import Iterator
from typing import Any, Optional, Union

import yaml

from hortus.hyperparams.errors import ConfigError, ConfigWarning, Path, format_path
from hortus.hyperparams.origin import Origin
from hortus.hyperparams.types import ItemPatch

_MAX_VALUES = 100_000
"""More values than any config has; bounds what nested YAML aliases can expand to."""


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
    """Reads a YAML or JSON file."""
    name = os.fspath(file_path)
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        raise ConfigError(f"{name}: no such file{_near_files(name)}") from None
    except (IsADirectoryError, PermissionError, OSError) as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, ValueError):
        raise ConfigError(f"{name}: not a text file in UTF-8; expected YAML or JSON") from None
    if name.endswith(".json"):
        try:
            json.loads(text)  # YAML would take more than JSON, and its complaints would mislead
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", 1)
            raise ConfigError(f"{name}:{line}: not valid JSON: {error}") from None
        text = text.replace("\t", " ")  # a tab is white space to JSON, an error to YAML
    return _parse_yaml(text, Origin(name))


def parse_overrides(text: str, origin: Union[str, Origin] = "override") -> Overrides:
    """Reads YAML text, JSON text, or assignments: `a.b=1,c[0].d='x, y',e=[1, 2]`."""
    origin = Origin(origin) if isinstance(origin, str) else origin
    if _ASSIGNMENT.match(text):
        return _parse_assignments(text, origin)
    return _parse_yaml(text, origin, is_file=False)


def override_params_dict(params: Any, overrides: Any, is_strict: bool = True) -> Any:
    """Overrides `params` by a mapping, a config, text, or the path of a YAML or JSON file."""
    if isinstance(overrides, (str, os.PathLike)):
        name = os.fspath(overrides)
        is_file = name.endswith((".yaml", ".yml", ".json")) and "=" not in name
        overrides = load_overrides(name) if is_file else parse_overrides(name)
    params.override(overrides, is_strict)
    return params


# ---- YAML -----------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """Safe tags only; plain words by YAML 1.2, and floats without a dot too."""


_PLAIN_WORDS = {
    "bool": ("^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    "int": ("^(?:[-+]?[0-9][0-9_]*|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    "float": (
        r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        "-+0123456789.",
    ),
    "null": (r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    "merge": ("^(?:<<)$", "<"),
}
_Loader.yaml_implicit_resolvers = {}
for _tag, (_pattern, _first) in _PLAIN_WORDS.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def _parse_yaml(text: str, origin: Origin, is_file: bool = True) -> Overrides:
    loader = None
    origins: dict[Path, Origin] = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        reader = _NodeReader(loader, origin, is_file, origins)
        values = {} if node is None else reader.read(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        where = str(Origin(origin.name, line)) if is_file else f"{origin}, line {line}"
        what = ": ".join(part for part in (error.context, error.problem) if part)
        raise ConfigError(f"{where}: not valid YAML: {what}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin}: not valid YAML: {error}".splitlines()[0]) from None
    except RecursionError:
        raise ConfigError(f"{origin}: nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()
    if not isinstance(values, dict):
        raise ConfigError(
            f"{origin}: expected keys with values (task: ...), got "
            f"{'a list' if isinstance(values, list) else repr(values)[:60]}"
        )
    return Overrides(values, origins, origin)


class _NodeReader:
    """Turns YAML nodes into plain data, and notes the line of each value."""

    def __init__(self, loader: _Loader, origin: Origin, is_file: bool, origins: dict):
        self._loader, self._origin, self._is_file, self._origins = loader, origin, is_file, origins
        self._open: set[int] = set()
        self._count = 0

    def read(self, node: yaml.Node, path: Path) -> Any:
        self._count += 1
        if self._count > _MAX_VALUES:
            raise ConfigError(f"{self._origin}: more than {_MAX_VALUES} values")
        if id(node) in self._open:
            raise ConfigError(f"{self._at(node)}: refers to itself")
        if path:
            self._origins[path] = self._at(node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                self._expect_tag(node, "seq")
                return [self.read(item, (*path, i)) for i, item in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict:
        self._expect_tag(node, "map")
        self._loader.flatten_mapping(node)
        values: dict[Any, Any] = {}
        lines: dict[Any, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(f"{self._at(key_node)}: a key must be a plain word")
            key = self._scalar(key_node)
            line = key_node.start_mark.line + 1
            where = (*path, str(key))
            if key in values and self._is_file and lines[key] != line:
                message = (
                    f"{format_path(where)} ({self._at(key_node)}): set on line {lines[key]} too"
                )
                warnings.warn(f"{message}; the last one counts", ConfigWarning, stacklevel=6)
            lines[key] = line
            if self._is_scalar_or_flow(value_node):
                values[key] = self.read(value_node, where)
            else:  # a block starts on the line after its key, which is where a user looks
                values[key] = self.read(value_node, where)
                self._origins[where] = self._at(key_node)
        return values

    def _is_scalar_or_flow(self, node: yaml.Node) -> bool:
        return isinstance(node, yaml.ScalarNode) or bool(node.flow_style)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        tag = node.tag.removeprefix("tag:yaml.org,2002:")
        if tag not in ("null", "bool", "int", "float", "str"):
            raise ConfigError(f"{self._at(node)}: the tag {node.tag!r} is not allowed in a config")
        text = node.value
        try:
            if tag == "int":
                return int(text.replace("_", ""), 0 if text[:2] in ("0o", "0x") else 10)
            if tag == "float":
                return float(
                    text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan")
                )
            return self._loader.construct_object(node)
        except (ValueError, KeyError):
            raise ConfigError(f"{self._at(node)}: {text[:40]!r} is no {tag}") from None

    def _expect_tag(self, node: yaml.Node, kind: str) -> None:
        if node.tag != f"tag:yaml.org,2002:{kind}":
            raise ConfigError(f"{self._at(node)}: the tag {node.tag!r} is not allowed in a config")

    def _at(self, node: yaml.Node) -> Origin:
        if not self._is_file:
            return self._origin
        return Origin(self._origin.name, node.start_mark.line + 1)


# ---- a.b=1,c[0]=2 ---------------------------------------------------------------------------

_ASSIGNMENT = re.compile(r"^\s*[A-Za-z_][\w.\[\]\s]*=")
_PATH_PART = re.compile(r"\s*(?:(?:^|\.)\s*([A-Za-z_]\w*)|\[\s*(\d+)\s*\]|\.(\d+))")


def _parse_assignments(text: str, origin: Origin) -> Overrides:
    values: dict[Any, Any] = {}
    origins: dict[Path, Origin] = {}
    for part in _split_at_commas(text, origin):
        name, equals, value = part.partition("=")
        if not equals:
            raise ConfigError(
                f"{origin}: expected key=value, got {part.strip()!r}; quote a value with commas "
                "in it: key='a,b' or key=[a, b]"
            )
        path = _parse_path(name.strip(), origin)
        origins[path] = origin
        _set(values, path, _parse_value(value.strip(), name.strip(), origin))
    return Overrides(values, origins, origin)


def _split_at_commas(text: str, origin: Origin) -> Iterator[str]:
    """Splits at commas outside of quotes and brackets. A quote counts only where a value starts."""
    start, depth, quote, previous = 0, 0, "", ","
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and previous in "=,[{:(":
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:index]
            start = index + 1
        previous = previous if char.isspace() else char
    if quote or depth > 0:
        raise ConfigError(f"{origin}: {quote or 'a bracket'} is not closed in {text[start:]!r}")
    if text[start:].strip():  # a comma at the end is harmless
        yield text[start:]


def _parse_path(name: str, origin: Origin) -> Path:
    path: list[Union[str, int]] = []
    position = 0
    while position < len(name):
        match = _PATH_PART.match(name, position)
        if match is None or (not path and match[1] is None):
            raise ConfigError(f"{origin}: {name!r} is not a path like task.model.heads[0].size")
        path.append(match[1] if match[1] is not None else int(match[2] or match[3]))
        position = match.end()
    return tuple(path)


def _parse_value(text: str, name: str, origin: Origin) -> Any:
    if not text:
        raise ConfigError(f"{origin}: {name} has no value; write {name}='' or {name}=null")
    try:
        return _parse_yaml(f"value: {text}", origin, is_file=False).values["value"]
    except ConfigError:
        if text[0] in "[{'\"!":
            raise ConfigError(f"{origin}: {name}: cannot read the value {text!r}") from None
        return text  # such as *.tfrecord, which YAML takes for an alias


def _set(values: dict, path: Path, value: Any) -> None:
    """Puts a value at a path of nested mappings; an index makes an ItemPatch."""
    for part, following in zip(path, path[1:]):
        kind = ItemPatch if isinstance(following, int) else dict
        inner = values.get(part)
        if isinstance(inner, list) and kind is ItemPatch:
            inner = values[part] = ItemPatch(enumerate(inner))
        if type(inner) is not kind:
            inner = values[part] = kind()
        values = inner
    values[path[-1]] = value


def _near_files(name: str) -> str:
    from hortus.hyperparams.errors import near_names

    folder, base = os.path.split(name)
    try:
        near = near_names(base, sorted(os.listdir(folder or "."))[:1000])
    except OSError:
        return f"; the folder {folder!r} does not exist" if folder else ""
    return (
        f". Did you mean {' or '.join(os.path.join(folder, one) for one in near)}?" if near else ""
    )


# ---- writing --------------------------------------------------------------------------------


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Block style, but lists of plain values on one line."""


def _represent_list(dumper: Any, values: Any) -> yaml.Node:
    is_flat = not any(isinstance(value, (list, tuple, dict)) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=is_flat)


def _represent_float(dumper: Any, value: float) -> yaml.Node:
    if value != value or value in (float("inf"), float("-inf")):
        return yaml.representer.SafeRepresenter.represent_float(dumper, value)
    return dumper.represent_scalar("tag:yaml.org,2002:float", repr(value))


_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(tuple, _represent_list)
_Dumper.add_representer(float, _represent_float)
_Dumper.ignore_aliases = lambda self, data: True


def _represent_text(dumper: Any, value: str) -> yaml.Node:
    # Words that YAML 1.1 readers take for booleans or numbers are quoted, for their sake too.
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=_style(value))


def _style(value: str) -> Optional[str]:
    loader = _Loader("")
    is_plain = loader.resolve(yaml.ScalarNode, value, (True, False)) == "tag:yaml.org,2002:str"
    loader.dispose()
    return None if is_plain else "'"


_Dumper.add_representer(str, _represent_text)


def dump_yaml(values: Any) -> str:
    """Plain data as YAML text that `load_overrides` reads back unchanged."""
    try:
        return yaml.dump(
            values,
            Dumper=_Dumper,
            sort_keys=False,
            default_flow_style=False,
            allow_unicode=True,
            width=100,
        )
    except yaml.representer.RepresenterError as error:
        raise ConfigError(f"cannot be written as YAML: {error}") from None
