"""Whether an evaluation is the best so far."""

import os
from typing import Optional

from hortus.core.actions.action import Action
from hortus.core.actions.metric_record import MetricRecord, is_better
from hortus.core.logs import Logs, Metric, lookup


class NewBestMetric(Action):
    """True when called with a better value of a metric than at all other steps.

    It is the condition of a `ConditionalAction`. Asked again at the same step, as after a restart,
    it answers the same.

    Args:
        metric: name in the logs, with `|` between the parts of a nested one, or a function of them.
        higher_is_better: whether larger values are better.
        filename: JSON file that remembers the values beyond this process; None forgets them.
        write: whether this host writes the file.
    """

    def __init__(
        self,
        metric: Metric,
        higher_is_better: bool = True,
        filename: "Optional[str | os.PathLike[str]]" = None,
        write: bool = True,
    ):
        self.metric = metric
        self.higher_is_better = higher_is_better
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", "function")
        self.record = MetricRecord(filename, name, write)

    @property
    def best_value(self) -> Optional[float]:
        """The best value so far; None before the first."""
        best: Optional[float] = None
        for value in self.record.values.values():
            if best is None or is_better(value, best, self.higher_is_better):
                best = value
        return best

    def rewind(self, step: int) -> None:
        self.record.rewind(step)

    def __call__(self, logs: Logs) -> bool:
        value, step = lookup(logs, self.metric), self._step()
        others = [other for at, other in self.record.values.items() if at != step]
        is_best = value == value and all(
            is_better(value, other, self.higher_is_better) for other in others
        )
        self.record.set(step, value)
        return is_best

    def _step(self) -> int:
        if self.controller is not None:
            return self.controller.step
        # Without a controller every call is an evaluation of its own.
        return 1 + max(self.record.values, default=0)
