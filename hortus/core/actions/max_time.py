"""Ends training after a given time."""

import time
from typing import Optional

from hortus.core.actions.action import Action
from hortus.core.logs import Logs


class MaxTime(Action):
    """Asks the controller to stop when this process has trained for `seconds`.

    A restart begins to count anew.

    Args:
        seconds: time from the beginning of training, evaluations included.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._start: Optional[float] = None

    def begin(self) -> None:
        # Training in several calls, with evaluations between them, is one training.
        if self._start is None:
            self._start = time.monotonic()

    def poll(self) -> None:
        if self._start is not None and time.monotonic() - self._start >= self.seconds:
            self.controller.request_stop(f"the time of {self.seconds:g} seconds is over")

    def __call__(self, logs: Logs) -> None:
        self.poll()
