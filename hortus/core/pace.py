"""How many steps fit into a given time."""

import sys
from collections.abc import Callable


class Pace:
    """Cuts loops into parts that take no longer than a given time, by what the last part took.

    All hosts cut alike: they share what they learn.

    Args:
        seconds: how long a part should take at most.
        any_host: whether a flag is true on any host.
        can_split: whether a loop has the same result in parts. Then the first part is a single
            step, as nobody knows yet how long a step takes. Otherwise it is the whole loop, from
            which nothing is learned, as it compiles.
    """

    def __init__(self, seconds: float, any_host: Callable[[bool], bool], can_split: bool):
        self.seconds = seconds
        self.can_split = can_split
        self._any_host = any_host
        self._steps = 1 if can_split else sys.maxsize
        self._knows = can_split

    def part(self, steps: int) -> int:
        """How many of `steps` steps to run now."""
        return min(steps, self._steps)

    def learn(self, steps: int, seconds: float) -> None:
        """Takes into account that a part of `steps` steps took so many seconds."""
        if not self._knows:
            self._knows = True
        elif self._any_host(seconds > self.seconds):
            self._steps = max(1, steps // 2)
        elif steps >= self._steps and not self._any_host(2 * seconds > self.seconds):
            self._steps *= 2
