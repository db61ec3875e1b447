"""What a controller needs of those that train and evaluate for it."""

import contextlib
from collections.abc import Callable
from typing import Any, Optional

Logs = dict[str, Any]


class Runner:
    """Base of both. The hooks do nothing, and may stay as they are."""

    def after_restore(self) -> None:
        """Called when a checkpoint has been restored."""


class TrainRunner(Runner):
    """Trains for a `Controller`. A subclass has `train`, or `train_part` and `splits_loops`."""

    splits_loops: bool = False
    """Whether `train_part` is there, so that a controller can answer signals amid a long loop."""

    def train(self, num_steps: int) -> Optional[Logs]:
        """Trains so many steps, and returns the logs of them."""
        return self.train_part(num_steps, first=True, last=True)

    def train_part(self, num_steps: int, first: bool, last: bool) -> Optional[Logs]:
        """Trains a part of a loop. All parts have one set of logs, which the last one returns.

        Args:
            num_steps: how many steps; the last part may have none.
            first: whether the loop begins with this part.
            last: whether it ends with it.
        """
        raise NotImplementedError(f"{type(self).__name__} has neither train nor train_part")

    @property
    def timing(self) -> Optional[Any]:
        """What the last loop spent, an `engine.base.Timing`; None if that is not known."""
        return None

    def keeping_data(self) -> contextlib.AbstractContextManager:
        """A restore inside leaves the training data where they are, if it can."""
        return contextlib.nullcontext()

    @property
    def first_bad_step(self) -> Optional[int]:
        """The first step since the last restore whose loss was not finite, if that is known."""
        return None

    def find_divergence(
        self,
        max_steps: int,
        folder: str,
        loss_upper_bound: float = float("inf"),
        suspect: Optional[int] = None,
    ) -> Optional[Any]:
        """Goes on until a step diverges; see `Trainer.find_divergence`. None if it cannot tell."""
        del max_steps, folder, loss_upper_bound, suspect
        return None


class EvalRunner(Runner):
    """Evaluates for a `Controller`. A subclass has `evaluate`, and calls `poll` in it."""

    _watcher: Optional[Callable[[], None]] = None

    def evaluate(self, num_steps: int = -1) -> Optional[Logs]:
        """Evaluates so many batches, -1 for all of the data, and returns the logs.

        It leaves the state of training as it was, also when an error ends it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no evaluate")

    def trial(self) -> contextlib.AbstractContextManager:
        """An evaluation inside is a trial, and is to leave nothing behind."""
        return contextlib.nullcontext()

    def poll(self) -> None:
        """To be called before each batch: where a controller leaves an evaluation on a signal."""
        if self._watcher is not None:
            self._watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Has `poll` call a function. It may raise an error, which ends the evaluation."""
        self._watcher = watcher
