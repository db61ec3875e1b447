"""Ends training when a metric no longer improves."""

import os
from typing import Optional

from hortus.core.actions.action import Action
from hortus.core.actions.metric_record import MetricRecord, is_better
from hortus.core.logs import Logs, Metric, lookup


class EarlyStopping(Action):
    """Asks the controller to stop after `patience` evaluations in a row without a better value.

    Args:
        metric: name in the logs, with `|` between the parts of a nested one, or a function of them.
        patience: evaluations without a better value that end training, 1 or more.
        min_delta: how much better a value has to be in order to count.
        higher_is_better: whether larger values are better.
        filename: JSON file that remembers the values, so that a restart goes on counting and a run
            that has ended this way stays ended; None forgets them.
        write: whether this host writes the file.
    """

    def __init__(
        self,
        metric: Metric,
        patience: int,
        min_delta: float = 0.0,
        higher_is_better: bool = True,
        filename: "Optional[str | os.PathLike[str]]" = None,
        write: bool = True,
    ):
        if patience < 1:
            raise ValueError(f"patience is {patience}, expected 1 or more")
        self.metric = metric
        self.patience = patience
        self.min_delta = min_delta
        self.higher_is_better = higher_is_better
        self.name = metric if isinstance(metric, str) else getattr(metric, "__name__", "function")
        self.record = MetricRecord(filename, self.name, write)

    def begin(self) -> None:
        self._stop_if_exhausted()

    def rewind(self, step: int) -> None:
        self.record.rewind(step)

    def __call__(self, logs: Logs) -> None:
        self.record.set(self.controller.step, lookup(logs, self.metric))
        self._stop_if_exhausted()

    def _stop_if_exhausted(self) -> None:
        best, best_step, waited = float("nan"), 0, 0
        for step, value in self.record.values.items():
            waited += 1
            if is_better(value, best, self.higher_is_better, self.min_delta):
                best, best_step, waited = value, step, 0
        if waited >= self.patience:
            self.controller.request_stop(
                f"{self.name} has not improved in {waited} evaluations: "
                f"{best:.6g} at step {best_step} is still the best"
            )
