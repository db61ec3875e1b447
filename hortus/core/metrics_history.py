"""The metrics of a run in one file, `metrics.jsonl`: a line of JSON per summary."""

import json
import os
import time
from typing import Any, Optional

from hortus.core import atomic_file
from hortus.core.logs import Logs, scalars


class MetricsHistory:
    """Appends metrics to a file, once per step and split.

    A line reads `{"step": 100, "split": "train", "wall_time": 1.7e9, "values": {...}}`, with values
    nested as in the logs. Values that are no single number are left out; NaN and infinities are
    written as `NaN`, `Infinity` and `-Infinity`, which Python's json and pandas read.

    A line is on disk when `record` returns. A run that was killed and goes on from a checkpoint
    calls `rewind` first, and so ends up with the same history as if nothing had happened.

    Args:
        path: the file, usually `metrics.jsonl` in the model directory.
    """

    def __init__(self, path: "str | os.PathLike[str]"):
        self.path = os.fspath(path)
        self._lines: dict[tuple[int, str], dict[str, Any]] = {}
        self._seen: Optional[tuple[int, ...]] = None  # the file's state that `_lines` tell

    def record(self, step: int, split: str, logs: Logs) -> None:
        """Writes one line; a former line of the same step and split makes place for it."""
        lines, values = self._load(), scalars(logs)
        line = {"step": step, "split": split, "wall_time": time.time(), "values": values}
        if (step, split) not in lines:
            self._append(line)
            lines[step, split] = line
        elif not self.has(step, split, logs):
            lines[step, split] = line
            self._rewrite()

    def has(self, step: int, split: str, logs: Logs) -> bool:
        """Whether just these values are on record."""
        line = self._load().get((step, split))
        return line is not None and _text(line["values"]) == _text(scalars(logs))

    def steps(self, split: str) -> set[int]:
        """The steps on record of a split."""
        return {step for step, name in self._load() if name == split}

    def rewind(self, step: int) -> None:
        """Drops all lines past `step`; the file is complete at every moment."""
        lines = self._load()
        past = [key for key in lines if key[0] > step]
        for key in past:
            del lines[key]
        if past:
            self._rewrite()

    def _load(self) -> dict[tuple[int, str], dict[str, Any]]:
        """All lines, by step and split; read again when someone else wrote to the file."""
        if self._seen == self._state():
            return self._lines
        self._lines, torn = {}, False
        try:
            with open(self.path, "rb") as file:
                for text in file:
                    line = _parse(text)
                    if line is None:
                        torn = True  # the writer was killed in the middle of a line
                    else:
                        self._lines[line["step"], line["split"]] = line
        except FileNotFoundError:
            pass
        if torn:
            self._rewrite()
        self._seen = self._state()
        return self._lines

    def _state(self) -> tuple[int, ...]:
        try:
            state = os.stat(self.path)
        except FileNotFoundError:
            return ()
        return (state.st_ino, state.st_size, state.st_mtime_ns)

    def _append(self, line: dict[str, Any]) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        # Opened anew each time: a rewrite, maybe by another process, puts a new file there.
        with open(self.path, "ab") as file:
            file.write(_text(line))
            file.flush()
            os.fsync(file.fileno())
        self._seen = self._state()

    def _rewrite(self) -> None:
        atomic_file.replace(self.path, b"".join(map(_text, self._lines.values())))
        self._seen = self._state()


def _text(line: dict[str, Any]) -> bytes:
    return json.dumps(line).encode() + b"\n"


def _parse(text: bytes) -> Optional[dict[str, Any]]:
    if not text.endswith(b"\n"):
        return None
    try:
        line = json.loads(text)
    except ValueError:
        return None
    is_line = isinstance(line, dict) and {"step", "split", "values"} <= line.keys()
    return line if is_line else None
