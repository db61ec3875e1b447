"""Checkpoints of the averaged weights."""

from typing import Any

from hortus.core.actions.action import Action
from hortus.core.logs import Logs


class EMACheckpoint(Action):
    """Writes the model with its averaged weights, after each evaluation.

        manager = CheckpointManager(Checkpoint(model=model), f"{model_dir}/ema_checkpoints")
        EMACheckpoint(optimizer, manager)

    Args:
        optimizer: an `ExponentialMovingAverage`, or anything with its `averaged_weights()`.
        checkpoint_manager: a manager of its own, whose checkpoint holds the model.
    """

    def __init__(self, optimizer: Any, checkpoint_manager: Any):
        self.optimizer = optimizer
        self.checkpoint_manager = checkpoint_manager

    def __call__(self, logs: Logs) -> None:
        # The manager copies the weights before `save` returns, even when it writes them later.
        with self.optimizer.averaged_weights():
            self.checkpoint_manager.save(self.controller.step)

    def end(self) -> None:
        self.checkpoint_manager.wait()
