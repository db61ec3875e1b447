"""Goes back to the last checkpoint when the loss diverges."""

import math
import os
from typing import Optional

from absl import logging

from hortus.core import compat
from hortus.core.actions.action import Action
from hortus.core.logs import Logs, as_scalar, flatten

_NOT_FOUND = "The step that did it was not found."


class DivergedError(RuntimeError):
    """Training has diverged, and going back has not helped or was not asked for."""


class Recovery(Action):
    """Looks at the loss after each training loop, before a checkpoint could keep a bad state.

    A term of the loss that is not finite, or a loss above the bound, sends the run back to its last
    checkpoint; after `recovery_max_trials` of those it ends with `DivergedError`.

    Args:
        loss_upper_bound: a loss above this counts as diverged.
        recovery_begin_steps: steps before which everything is let pass.
        recovery_max_trials: how often to go back; 0 ends at the first time, -1 never looks.
        folder: where the trainer saves the batch that did it, see `Trainer.find_divergence`.
        loss: name of the loss that the bound is for. Its terms are all values with `loss` in their
            names.
    """

    def __init__(
        self,
        loss_upper_bound: float = 1e6,
        recovery_begin_steps: int = 0,
        recovery_max_trials: int = 0,
        folder: "str | os.PathLike[str]" = "",
        loss: str = "training_loss",
    ):
        self.loss_upper_bound = loss_upper_bound
        self.recovery_begin_steps = recovery_begin_steps
        self.recovery_max_trials = recovery_max_trials
        self.folder = os.fspath(folder)
        self.loss = loss
        self.trials = 0

    def begin(self) -> None:
        # There has to be something to go back to from the first loop on, if only to find the batch.
        if self.recovery_max_trials >= 0 and self.controller.latest_checkpoint is None:
            self.controller.save_checkpoint()

    def __call__(self, logs: Logs) -> None:
        step = self.controller.step
        if self.recovery_max_trials < 0 or step < self.recovery_begin_steps:
            return
        fault = self._fault(logs)
        if fault is None:
            return
        message = f"Training diverged at step {step}: {fault}."
        if self.trials >= self.recovery_max_trials:
            raise DivergedError(f"{message} {self._find_batch(step)} {self._advice()}")
        restored = self.controller.roll_back()
        if restored is None:
            raise DivergedError(f"{message} There is no checkpoint to go back to.")
        self.trials += 1
        note = f"Going on from step {restored}, trial {self.trials} of {self.recovery_max_trials}."
        logging.warning("%s %s", message, note)

    def _fault(self, logs: Logs) -> Optional[str]:
        """What is wrong with the losses, or None."""
        values = {name: as_scalar(value) for name, value in flatten(logs).items()}
        losses = {name: v for name, v in values.items() if v is not None and _is_loss(name)}
        broken = [f"{name} is {v}" for name, v in losses.items() if not math.isfinite(v)]
        if broken:
            return ", ".join(broken)
        total = losses.get(self.loss)
        if total is not None and total > self.loss_upper_bound:
            return f"{self.loss} is {total:g}, above {self.loss_upper_bound:g}"
        return None

    def _find_batch(self, step: int) -> str:
        """Has the trainer find the step that did it and save its batch; tells of both."""
        if not self.folder or self.controller.trainer is None:
            return _NOT_FOUND
        trainer = compat.as_train_runner(self.controller.trainer)
        # The trainer may know the step already; to be sure it goes the same way again, one step at
        # a time.
        suspect = trainer.first_bad_step
        restored = self.controller.restore_checkpoint()
        if restored is None:
            return _NOT_FOUND
        self.controller.progress.say(f"Looking for the step that did it, from step {restored} on")
        found = trainer.find_divergence(
            step - restored,
            self.folder,
            loss_upper_bound=self.loss_upper_bound,
            suspect=suspect,
        )
        return str(found) if found is not None else _NOT_FOUND

    def _advice(self) -> str:
        if self.trials:
            return f"Going back to a checkpoint has not helped (trials: {self.trials})."
        return (
            "Set trainer.recovery_max_trials to go back to the last checkpoint instead, or lower "
            "the learning rate."
        )


def _is_loss(name: str) -> bool:
    last = name.rpartition("|")[2].lower()
    return "loss" in last and "scale" not in last
