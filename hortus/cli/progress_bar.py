"""How far a long command is: a bar on a terminal, now and then a line elsewhere."""

import sys
import time
from typing import Any, Optional, TextIO

_LINE_SECONDS = 10.0


class ProgressBar:
    """Called with what is done, how many are done, and how many there are, if that is known.

    Args:
        stream: where it is shown; None for standard error.
        terminal: whether the stream is a terminal; None to find out.
        line_seconds: time between two lines where it is none.
    """

    def __init__(
        self,
        stream: Optional[TextIO] = None,
        terminal: Optional[bool] = None,
        line_seconds: float = _LINE_SECONDS,
    ):
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty() if terminal is None else terminal
        self._line_seconds = line_seconds
        self._what, self._begin, self._last = "", 0.0, 0.0
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, what: str, done: int, total: Optional[int] = None) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._begin, self._last = what, now, now
            self._task = None
        if self._terminal:
            self._draw(done, total)
        elif now - self._last >= self._line_seconds:
            self._last = now
            share = f"/{total}" if total else ""
            rate = done / max(now - self._begin, 1e-9)
            left = f", {(total - done) / rate:.0f} s left" if total and rate else ""
            print(f"{what}: {done}{share}, {rate:.0f}/s{left}", file=self._stream, flush=True)

    def clear(self) -> None:
        """Takes the bar away, so that something can be printed; the next call draws a new one."""
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._task = None, None

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.clear()

    def _draw(self, done: int, total: Optional[int]) -> None:
        if self._bar is None:
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeRemainingColumn(),
                console=Console(file=self._stream, force_terminal=True),
                transient=True,
            )
            self._bar.start()
        if self._task is None:
            self._task = self._bar.add_task(self._what, total=total)
        self._bar.update(self._task, completed=done, total=total)
