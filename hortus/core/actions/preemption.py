"""Stops a run in good order when it is asked to by a signal.

Exit codes, so that whoever started the run can tell what happened:

    75   SIGTERM: the machine is taken away. A checkpoint was written; run the same command again
         (75 is EX_TEMPFAIL of sysexits.h, "try again").
    130  Ctrl-C, as shells have it. A checkpoint was written, too.
"""

import contextlib
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Optional

from hortus.core.actions.action import Action
from hortus.core.logs import Logs

_EXIT_CODES = {signal.SIGTERM: 75, signal.SIGINT: 130}
_NAMES = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}


class Preempted(SystemExit):
    """Ends the process after a signal; `code` is its exit code.

    Args:
        signum: the signal.
        step: where training stopped.
        checkpoint: the newest checkpoint; None if there is none.
    """

    def __init__(self, signum: int, step: int, checkpoint: Optional[str]):
        super().__init__(_EXIT_CODES[signal.Signals(signum)])
        self.signum = signum
        self.step = step
        self.checkpoint = checkpoint

    def __str__(self) -> str:
        name = _NAMES[signal.Signals(self.signum)]
        if self.checkpoint is None:
            return f"Stopped at step {self.step} by {name}. No checkpoint was written."
        return (
            f"Stopped at step {self.step} by {name}. The checkpoint is {self.checkpoint}; "
            "run the same command again to go on from there."
        )


class Preemption(Action):
    """Listens to SIGTERM and Ctrl-C while training runs.

    The first signal lets the current loop end, or leaves the current evaluation after a batch; then
    the controller writes a checkpoint and raises `Preempted`. The controller cuts long loops so
    that this takes seconds. A second Ctrl-C ends everything at once, without a checkpoint.
    """

    def __init__(self) -> None:
        self._former: dict[int, Any] = {}
        self._signum: Optional[int] = None

    def begin(self) -> None:
        # Python lets only the main thread listen; elsewhere signals do what they always did.
        if threading.current_thread() is not threading.main_thread():
            return
        self._signum = None
        for signum in _EXIT_CODES:
            self._former[signum] = signal.signal(signum, self._on_signal)

    def end(self) -> None:
        for signum, former in self._former.items():
            # A handler that was not set from Python cannot be put back from here.
            signal.signal(signum, signal.SIG_DFL if former is None else former)
        self._former.clear()

    def __call__(self, logs: Logs) -> None:
        """Nothing: the controller itself stops at the end of a loop."""

    def _on_signal(self, signum: int, frame: Optional[FrameType]) -> None:
        del frame
        if self._signum is not None:
            if signum == signal.SIGINT:
                raise KeyboardInterrupt
            return
        self._signum = signum
        name = _NAMES[signal.Signals(signum)]
        self.controller.request_stop(f"{name} came", signum)
        hint = "; Ctrl-C again stops at once" if signum == signal.SIGINT else ""
        self._say(f"{name}: writing a checkpoint after the current loop, then stopping{hint}")

    def _say(self, text: str) -> None:
        say: Callable[[str], None] = self.controller.progress.say
        # The signal may have come amid a print, in which another cannot begin.
        with contextlib.suppress(RuntimeError):
            say(text)
