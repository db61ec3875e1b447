"""Assignments as a flag holds them: `a.b=1,c[0].d='x, y',e=[1, 2]`."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

from hortus.hyperparams.errors import ConfigError, short
from hortus.hyperparams.origin import Origin
from hortus.hyperparams.path import Path, parse_path
from hortus.hyperparams.types import MAX_DEPTH, ItemPatch
from hortus.hyperparams.yaml_text import read_word, read_yaml

_START = re.compile(r"\s*[^\W\d][\w.\[\]\s-]*=")
# Quoted text, where '' and \" are quotes inside of it.
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)


def are_assignments(text: str) -> bool:
    """Whether the text starts with `name=`, which neither YAML nor JSON with keys does."""
    return _START.match(text) is not None


def read_assignments(text: str, origin: Origin) -> dict[str, Any]:
    """Nested values; an index makes an ItemPatch.

    Raises:
        ConfigError: a name is not a path, or a value cannot be read.
    """
    values: dict[str, Any] = {}
    for part in _split_at_commas(text, origin):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ConfigError(
                f"{origin}: expected key=value, got {short(name)}; quote a value with commas in "
                "it: key='a,b' or key=[a, b]"
            )
        path = parse_path(name)
        if path is None or len(path) > MAX_DEPTH:
            example = "task.model.heads[0].size"
            raise ConfigError(f"{origin}: {short(name)} is not a path like {example}")
        _set(values, path, _read_value(value, name, origin), origin)
    return values


def _split_at_commas(text: str, origin: Origin) -> Iterator[str]:
    """Splits at commas outside of quotes and brackets. A quote counts only where a value starts."""
    start = position = depth = 0
    previous = ","
    while position < len(text):
        char = text[position]
        quoted = _QUOTED.match(text, position) if char in "'\"" and previous in "=,[{:" else None
        if quoted:
            position = quoted.end() - 1
        elif char in "[{" and (depth or previous == "="):
            depth += 1
        elif char in "]}":
            depth = max(depth - 1, 0)
        elif char == "," and depth == 0:
            yield text[start:position]
            start = position + 1
        elif char in "'\"" and previous in "=,[{:":
            raise ConfigError(f"{origin}: {char} is not closed in {short(text[start:])}")
        previous = previous if char.isspace() else char
        position += 1
    if depth > 0:
        raise ConfigError(f"{origin}: a bracket is not closed in {short(text[start:])}")
    if text[start:].strip():  # a comma at the end is harmless
        yield text[start:]


def _read_value(text: str, name: str, origin: Origin) -> Any:
    if not text:
        raise ConfigError(f"{origin}: {name} has no value; write {name}='' or {name}=null")
    try:
        if text[0] in "[{'\"":
            return read_yaml(text, origin, with_lines=False)[0]
        return read_word(text)
    except (ConfigError, ValueError):
        raise ConfigError(f"{origin}: {name}: cannot read the value {short(text)}") from None


def _set(values: Any, path: Path, value: Any, origin: Origin) -> None:
    """Puts a value at a path of nested mappings and lists; a later one wins."""
    for part, following in itertools.pairwise(path):
        inner = values[part] if _has(values, part) else None
        kind = ItemPatch if isinstance(following, int) else dict
        if not (isinstance(inner, list) and kind is ItemPatch) and type(inner) is not kind:
            inner = kind()
            _put(values, part, inner, origin)
        values = inner
    _put(values, path[-1], value, origin)


def _has(values: Any, part: Any) -> bool:
    return part < len(values) if isinstance(values, list) else part in values


def _put(values: Any, part: Any, value: Any, origin: Origin) -> None:
    if not isinstance(values, list):
        values[part] = value
    elif part <= len(values):
        values[part : part + 1] = [value]
    else:
        raise ConfigError(f"{origin}: no item [{part}] in a list of {len(values)}")
