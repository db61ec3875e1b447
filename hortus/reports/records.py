"""Reading the files of a run that may be damaged, half written, or made to do harm.

What cannot be read counts as absent: a report tells what is there. No file is read beyond a size
that a run's files never have, and nothing but plain files is opened, so that nothing hangs.
"""

import json
import math
import os
from collections.abc import Iterator
from typing import Any, Optional

MAX_TEXT = 64 << 20
"""Bytes of a text file that are read; metrics of a million steps take less."""
MAX_LINE = 4 << 20
"""Bytes of a line that are read."""


def is_readable(path: str) -> bool:
    """Whether there is a plain file: a pipe or a device might never end."""
    return os.path.isfile(path) and os.access(path, os.R_OK)


def read_text(path: str) -> str:
    """The text of a file, its first `MAX_TEXT` bytes; what is not UTF-8 is shown as such."""
    with open(path, "rb") as file:
        return file.read(MAX_TEXT).decode("utf-8", "replace")


def read_json(path: str) -> Any:
    """The content of a JSON file; None where there is none that can be read."""
    try:
        return parse_json(read_text(path)) if is_readable(path) else None
    except OSError:
        return None


def parse_json(text: str) -> Any:
    """What a JSON text says; None for what is no JSON, or is nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def json_lines(path: str) -> Iterator[dict[str, Any]]:
    """The objects in a file with one per line; other lines are left out."""
    if not is_readable(path):
        return
    with open(path, "rb") as file:
        while raw := file.readline(MAX_LINE):
            line = parse_json(raw.decode("utf-8", "replace"))
            if isinstance(line, dict):
                yield line


def number(value: Any) -> Optional[float]:
    """The value as a float, NaN and infinities included; None if it is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def finite(value: Any) -> Optional[float]:
    """The value as a float; None if it is no finite number."""
    found = number(value)
    return found if found is not None and math.isfinite(found) else None


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}
