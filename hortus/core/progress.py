"""Shows how far training is: a live line on a terminal, plain lines in a log."""

import datetime
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Optional, TextIO

from hortus.core.logs import Logs, as_scalar, flatten

_LOSSES = ("training_loss", "total_loss", "loss")
_SHOWN_METRICS = 8
# What a field looks like on a terminal, where there is little room.
_SHORT = {
    "eta": "{} left",
    "examples_per_s": "{} examples/s",
    "steps_per_s": "{} steps/s",
    "data_wait": "data {}",
    "loss": "loss {}",
    "learning_rate": "lr {}",
    "memory": "{}",
}


def peak_memory() -> Optional[int]:
    """The most bytes of main memory that this process has held; None where that is unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Progress:
    """Step, time left, examples per second, share of time waiting for data, loss, learning rate.

    On a terminal this is one line that stays at the bottom. Elsewhere a line is printed at each
    summary, and at least every `line_seconds`:

        train step=1200/5000 eta=0:12:31 examples_per_s=812 data_wait=3% loss=0.5321
        learning_rate=0.01 memory=1.2GiB

    (all on one line). `stop` leaves the terminal as it was; the controller sees to it.

    Args:
        enabled: whether anything is shown; only the chief host should.
        stream: where it goes; None for standard error.
        terminal: whether the stream is a terminal; None to find out.
        line_seconds: longest time between two plain lines, as far as loops allow.
        memory: returns the peak of memory use in bytes, or None.
    """

    def __init__(
        self,
        *,
        enabled: bool = True,
        stream: Optional[TextIO] = None,
        terminal: Optional[bool] = None,
        line_seconds: float = 60.0,
        memory: Callable[[], Optional[int]] = peak_memory,
    ):
        self.enabled = enabled
        self.line_seconds = line_seconds
        self._stream = stream
        self._terminal = terminal
        self._memory = memory
        self._display: Optional[_Display] = None
        self._total = 0
        self._fields: dict[str, str] = {}
        self._first: Optional[tuple[int, float]] = None
        self._start = (0, 0.0)
        self._last_line = 0.0

    def start(self, step: int, total: int) -> None:
        """Training begins, or goes on, at `step` of `total`."""
        self._total, self._fields = total, {}
        self._start, self._first = (step, time.monotonic()), None
        self._last_line = time.monotonic()
        if self.enabled:
            self._open().update(step, total, {}, True)

    def advance(self, step: int) -> None:
        """Training has come to `step`, in the middle of a loop."""
        if self._display is not None:
            self._fields["eta"] = self._eta(step)
            self._display.update(step, self._total, self._fields, False)

    def trained(self, step: int, logs: Logs, timing: Any = None, is_due: bool = True) -> None:
        """A loop has ended.

        Args:
            step: the global step.
            logs: those of the loop.
            timing: `examples`, `seconds` and `data_wait_seconds` of the loop, or None.
            is_due: whether a plain line should be printed now.
        """
        if self._display is None:
            return
        self._fields = {"eta": self._eta(step), **self._rates(step, timing)}
        self._fields.update(_shown_logs(logs), memory=_bytes(self._memory()))
        # What the first loop took says little: it compiles.
        self._first = self._first or (step, time.monotonic())
        now = time.monotonic()
        if is_due or step >= self._total or now - self._last_line >= self.line_seconds:
            is_due, self._last_line = True, now
        self._display.update(step, self._total, self._fields, is_due)

    def evaluating(self, step: int) -> None:
        """An evaluation begins."""
        if self.enabled:
            self._open().working(f"evaluating at step {step}")

    def evaluated(self, step: int, logs: Logs, seconds: float) -> None:
        """An evaluation has ended after so many seconds."""
        if self._display is None:
            return
        self._display.working("")
        values = {name: as_scalar(value) for name, value in flatten(logs).items()}
        shown = [f"{name}={value:.6g}" for name, value in values.items() if value is not None]
        if len(shown) > _SHOWN_METRICS:
            shown = [*shown[:_SHOWN_METRICS], f"({len(shown) - _SHOWN_METRICS} more)"]
        self._display.line(f"eval step={step} {' '.join(shown)} seconds={seconds:.1f}")

    def say(self, text: str) -> None:
        """Prints a message, above the live line where there is one."""
        if self._display is not None:
            self._display.line(text)
        elif self.enabled:
            _PlainDisplay(self._stream or sys.stderr).line(text)

    def stop(self) -> None:
        """Leaves the terminal as it was. Nothing happens when nothing is shown."""
        if self._display is not None:
            display, self._display = self._display, None
            display.close()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def _open(self) -> "_Display":
        if self._display is None:
            stream = self._stream or sys.stderr
            is_terminal = stream.isatty() if self._terminal is None else self._terminal
            self._display = _TerminalDisplay(stream) if is_terminal else _PlainDisplay(stream)
        return self._display

    def _eta(self, step: int) -> str:
        since, begin = self._first or self._start
        if step <= since:
            since, begin = self._start
        if step <= since:
            return "-"
        seconds = (time.monotonic() - begin) / (step - since) * max(0, self._total - step)
        return str(datetime.timedelta(seconds=round(seconds)))

    def _rates(self, step: int, timing: Any) -> dict[str, str]:
        if timing is not None and timing.seconds > 0 and timing.examples:
            wait = timing.data_wait_seconds / timing.seconds
            rate = timing.examples / timing.seconds
            return {"examples_per_s": _rate(rate), "data_wait": f"{wait:.0%}"}
        begin, since = self._start
        seconds = time.monotonic() - since
        return {"steps_per_s": _rate((step - begin) / seconds)} if seconds else {}


class _Display:
    """Where the progress is shown."""

    def update(self, step: int, total: int, fields: Mapping[str, str], is_due: bool) -> None:
        raise NotImplementedError

    def working(self, what: str) -> None:
        """Something other than training goes on; empty when that is over."""

    def line(self, text: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


class _PlainDisplay(_Display):
    def __init__(self, stream: TextIO):
        self._stream = stream

    def update(self, step: int, total: int, fields: Mapping[str, str], is_due: bool) -> None:
        if is_due and fields:
            values = " ".join(f"{name}={value}" for name, value in fields.items() if value)
            self.line(f"train step={step}/{total} {values}")

    def line(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class _TerminalDisplay(_Display):
    def __init__(self, stream: TextIO):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        self._console = Console(file=stream, force_terminal=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            # On a narrow terminal its end is cut off, rather than going on in another line.
            TextColumn("{task.fields[values]}", table_column=Column(no_wrap=True)),
            console=self._console,
            refresh_per_second=4,
        )
        self._task: Any = None
        self._bar.start()

    def update(self, step: int, total: int, fields: Mapping[str, str], is_due: bool) -> None:
        shown = (_SHORT[name].format(value) for name, value in fields.items() if value)
        values = "  ".join(shown)
        if self._task is None:
            self._task = self._bar.add_task("train", total=total, completed=step, values=values)
        self._bar.update(
            self._task, description="train", total=total, completed=step, values=values
        )

    def working(self, what: str) -> None:
        if self._task is not None:
            self._bar.update(self._task, description=what or "train")

    def line(self, text: str) -> None:
        self._bar.refresh()
        self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self._bar.stop()


def _shown_logs(logs: Logs) -> dict[str, str]:
    """The loss and the learning rate, as far as the logs have them."""
    values = {name: as_scalar(value) for name, value in flatten(logs).items()}
    values = {name: value for name, value in values.items() if value is not None}
    losses = [name for name in _LOSSES if name in values]
    losses += [name for name in values if "loss" in name]
    shown = {"loss": f"{values[losses[0]]:.4g}"} if losses else {}
    if "learning_rate" in values:
        shown["learning_rate"] = f"{values['learning_rate']:.4g}"
    return shown


def _bytes(count: Optional[int]) -> str:
    if count is None:
        return ""
    return f"{count / 2**30:.1f}GiB" if count >= 2**30 else f"{count / 2**20:.0f}MiB"


def _rate(per_second: float) -> str:
    return f"{per_second:.0f}" if per_second >= 100 else f"{per_second:.3g}"
