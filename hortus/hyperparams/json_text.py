"""JSON text to plain data, with the line of each value."""

import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

from hortus.hyperparams.errors import ConfigError, ConfigWarning
from hortus.hyperparams.origin import Origin
from hortus.hyperparams.path import Path, format_path
from hortus.hyperparams.types import MAX_DEPTH
from hortus.hyperparams.yaml_text import check_text

# Enough to cut text into tokens that the json module has found to be right.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def read_json(text: str, origin: Origin, with_lines: bool) -> tuple[Any, dict[Path, Origin]]:
    """The data in the text, and the origin of each value.

    Raises:
        ConfigError: the text is not JSON.
    """
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        where = Origin(origin.name, error.lineno) if with_lines else origin
        raise ConfigError(f"{where}: not valid JSON: {error.msg}") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise ConfigError(f"{origin}: not valid JSON: {error}") from None
    except RecursionError:
        raise ConfigError(f"{origin}: nested too deeply") from None
    reader = _Reader(text, origin, with_lines)
    return reader.read(()), reader.origins


class _Reader:
    """Reads text that is known to be valid: no surprises, only places."""

    def __init__(self, text: str, origin: Origin, with_lines: bool):
        self.origins: dict[Path, Origin] = {}
        self._origin, self._with_lines = origin, with_lines
        self._line = 1
        self._tokens = self._tokenize(text)

    def _tokenize(self, text: str) -> Iterator[str]:
        counted = 0
        for match in _TOKEN.finditer(text):
            self._line += text.count("\n", counted, match.start())
            counted = match.start()
            yield match[0]

    def read(self, path: Path) -> Any:
        return self._value(next(self._tokens), path)

    def _value(self, token: str, path: Path) -> Any:
        if len(path) > MAX_DEPTH:
            raise ConfigError(f"{self._at()}: nested too deeply")
        if path:
            self.origins[path] = self._at()
        if token == "{":
            return self._mapping(path)
        if token == "[":
            return self._list(path)
        return self._scalar(token)

    def _mapping(self, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for token in self._tokens:
            if token == "}":
                break
            if token == ",":
                continue
            key = self._scalar(token)
            where = (*path, key)
            if key in values:
                message = f"{format_path(where)} ({self._at()}): set twice; the last one counts"
                warnings.warn(message, ConfigWarning, stacklevel=6)
            next(self._tokens)  # the colon
            values[key] = self.read(where)
        return values

    def _list(self, path: Path) -> list[Any]:
        values: list[Any] = []
        for token in self._tokens:
            if token == "]":
                break
            if token != ",":
                values.append(self._value(token, (*path, len(values))))
        return values

    def _scalar(self, token: str) -> Any:
        value = json.loads(token)
        try:
            return check_text(value) if isinstance(value, str) else value
        except ValueError as error:
            raise ConfigError(f"{self._at()}: {token[:40]} is no text: {error}") from None

    def _at(self) -> Origin:
        return Origin(self._origin.name, self._line) if self._with_lines else self._origin
