"""YAML text to plain data and back.

Only the safe tags are known, so that a file cannot run code. Plain words are read by the rules of
YAML 1.2: `1e-3` is a number, `off` is text, `010` is ten. Every value keeps the line it stands on.
"""

import re
import warnings
from collections.abc import Sequence
from typing import Any

import yaml

from hortus.hyperparams.errors import ConfigError, ConfigWarning
from hortus.hyperparams.origin import Origin
from hortus.hyperparams.path import Path, format_path
from hortus.hyperparams.types import MAX_DEPTH

MAX_VALUES = 100_000
"""More values than any config has; bounds what nested YAML aliases can expand to."""

_MAX_DIGITS = 1000
_CORE = "tag:yaml.org,2002:"
_WORDS = {
    "null": re.compile(r"~|null|Null|NULL|"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "int": re.compile(r"[-+]?[0-9][0-9_]*|0o[0-7]+|0x[0-9a-fA-F]+"),
    "float": re.compile(
        r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    ),
    "merge": re.compile("<<"),
}
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_yaml(text: str, origin: Origin, with_lines: bool) -> tuple[Any, dict[Path, Origin]]:
    """The data in the text, {} when there is none, and the origin of each value.

    Raises:
        ConfigError: the text is not YAML, or more than plain data.
    """
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        reader = _Reader(origin, with_lines)
        values = None if node is None else reader.read(node, ())
        return ({} if values is None else values), reader.origins
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ": ".join(part for part in (error.context, error.problem) if part)
        where = _line(origin, mark.line + 1 if mark else 1, with_lines)
        raise ConfigError(f"{where}: not valid YAML: {what}") from None
    except yaml.reader.ReaderError as error:
        where = _line(origin, text.count("\n", 0, error.position) + 1, with_lines)
        what = f"the character {chr(error.character)!a} is not allowed"
        raise ConfigError(f"{where}: not valid YAML: {what}") from None
    except RecursionError:
        raise ConfigError(f"{origin}: nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()


def read_word(text: str) -> Any:
    """What an unquoted word is: null, true or false, a number, or else text."""
    return _scalar(_kind(text), text)


def check_text(text: str) -> str:
    """Returns the text if it can be written to a file.

    Raises:
        ValueError: it has half a surrogate pair, which JSON can spell and UTF-8 cannot.
    """
    if _SURROGATE.search(text):
        raise ValueError("half a surrogate pair")
    return text


def _line(origin: Origin, line: int, with_lines: bool) -> str:
    return str(Origin(origin.name, line)) if with_lines else f"{origin}, line {line}"


def _kind(word: str) -> str:
    return next((kind for kind, words in _WORDS.items() if words.fullmatch(word)), "str")


def _scalar(kind: str, text: str) -> Any:
    """The value of a scalar of a core kind; raises ValueError when it is none."""
    if kind == "null":
        return None
    if kind == "bool":
        if text.lower() not in yaml.constructor.SafeConstructor.bool_values:
            raise ValueError(text)
        return yaml.constructor.SafeConstructor.bool_values[text.lower()]
    if kind == "int":
        if len(text) > _MAX_DIGITS:
            raise ValueError("too many digits")
        return int(text.replace("_", ""), 0 if text[:2] in ("0o", "0x") else 10)
    if kind == "float":
        return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    return check_text(text)


class _Loader(yaml.SafeLoader):
    """Resolves plain words by YAML 1.2."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return _CORE + (_kind(value) if implicit[0] else "str")
        return _CORE + ("seq" if kind is yaml.SequenceNode else "map")

    def fetch_flow_collection_start(self, token: Any) -> None:
        # Before PyYAML looks far ahead of each of thousands of brackets, which takes seconds.
        if self.flow_level > MAX_DEPTH:
            raise yaml.scanner.ScannerError(None, None, "nested too deeply", self.get_mark())
        super().fetch_flow_collection_start(token)


class _Reader:
    """Turns YAML nodes into plain data, and notes the line of each value."""

    def __init__(self, origin: Origin, with_lines: bool):
        self.origins: dict[Path, Origin] = {}
        self._origin, self._with_lines = origin, with_lines
        self._open: set[int] = set()
        self._count = 0

    def read(self, node: Any, path: Path) -> Any:
        self._count += 1
        if self._count > MAX_VALUES:
            raise ConfigError(f"{self._origin}: more than {MAX_VALUES} values")
        if len(path) > MAX_DEPTH:
            raise ConfigError(f"{self._at(node)}: nested too deeply")
        if id(node) in self._open:
            raise ConfigError(f"{self._at(node)}: refers to itself")
        if path:
            self.origins[path] = self._at(node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._open.add(id(node))
        values = (self._list if isinstance(node, yaml.SequenceNode) else self._mapping)(node, path)
        self._open.discard(id(node))
        return values

    def _list(self, node: yaml.SequenceNode, path: Path) -> Sequence[Any]:
        # Files that Python wrote may say !!python/tuple, which is as safe as a list.
        kind = self._expect_tag(node, "seq", "python/tuple")
        items = [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        return items if kind == "seq" else tuple(items)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[Any, Any]:
        self._expect_tag(node, "map")
        values: dict[Any, Any] = {}
        lines: dict[Any, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_CORE}merge":
                values.update(self._merged(value_node, path))
        for key_node, value_node in node.value:
            if key_node.tag == f"{_CORE}merge":
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(f"{self._at(key_node)}: a key must be a plain word")
            key = self._scalar(key_node)
            where = (*path, str(key))
            if key in lines:
                first = f" on line {lines[key]} too" if self._with_lines else " twice"
                message = f"{format_path(where)} ({self._at(key_node)}): set{first}"
                warnings.warn(f"{message}; the last one counts", ConfigWarning, stacklevel=6)
            lines[key] = key_node.start_mark.line + 1
            values[key] = self.read(value_node, where)
            if not isinstance(value_node, yaml.ScalarNode) and not value_node.flow_style:
                # A block starts on the line after its key, which is where a user looks.
                self.origins[where] = self._at(key_node)
        return values

    def _merged(self, node: Any, path: Path) -> dict[Any, Any]:
        """What `<<: *a` or `<<: [*a, *b]` brings in; the first of several counts."""
        values: dict[Any, Any] = {}
        for source in reversed(node.value if isinstance(node, yaml.SequenceNode) else [node]):
            if not isinstance(source, yaml.MappingNode):
                raise ConfigError(f"{self._at(source)}: << takes a mapping, or a list of them")
            values.update(self.read(source, path))
        return values

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        kind = self._expect_tag(node, "null", "bool", "int", "float", "str", "merge")
        try:
            return _scalar(kind, node.value)
        except ValueError:
            raise ConfigError(f"{self._at(node)}: {node.value[:40]!r} is no {kind}") from None

    def _expect_tag(self, node: yaml.Node, *kinds: str) -> str:
        kind = node.tag.removeprefix(_CORE)
        if kind not in kinds:
            raise ConfigError(f"{self._at(node)}: the tag {node.tag!r} is not allowed in a config")
        return kind

    def _at(self, node: Any) -> Origin:
        if not self._with_lines:
            return self._origin
        return Origin(self._origin.name, node.start_mark.line + 1)


# ---- writing --------------------------------------------------------------------------------


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Block style, but lists of plain values on one line; no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_list(dumper: Any, values: Any) -> yaml.Node:
    is_flat = not any(isinstance(value, (list, tuple, dict)) for value in values)
    return dumper.represent_sequence(f"{_CORE}seq", values, flow_style=is_flat)


def _represent_text(dumper: Any, value: str) -> yaml.Node:
    # The dumper quotes what YAML 1.1 would not take for text; so must be what 1.2 would not.
    style = None if _kind(value) == "str" else "'"
    return dumper.represent_scalar(f"{_CORE}str", value, style=style)


_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(tuple, _represent_list)
_Dumper.add_representer(str, _represent_text)


def dump_yaml(values: Any) -> str:
    """Plain data as YAML text that `read_yaml` reads back unchanged; tuples become lists.

    Raises:
        ConfigError: there is something else than plain data.
    """
    try:
        return yaml.dump(
            values,
            Dumper=_Dumper,
            sort_keys=False,
            default_flow_style=False,
            allow_unicode=True,
            width=100,
        )
    except (yaml.representer.RepresenterError, ValueError) as error:
        raise ConfigError(f"cannot be written as YAML: {error}") from None
