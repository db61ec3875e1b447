"""Things that a controller does after each training loop and each evaluation.

An action is anything that can be called with the logs. Those that subclass `Action` also learn of
the controller, of the beginning and end of training, and of steps that are undone.
"""

from hortus.core.actions.action import Action
from hortus.core.actions.conditional import ConditionalAction
from hortus.core.actions.early_stopping import EarlyStopping
from hortus.core.actions.ema_checkpoint import EMACheckpoint
from hortus.core.actions.export import ExportAction
from hortus.core.actions.factory import Context, build_actions, register_action, registered_actions
from hortus.core.actions.max_time import MaxTime
from hortus.core.actions.new_best_metric import NewBestMetric
from hortus.core.actions.preemption import Preempted, Preemption
from hortus.core.actions.recovery import DivergedError, Recovery

__all__ = [
    "Action",
    "ConditionalAction",
    "Context",
    "DivergedError",
    "EMACheckpoint",
    "EarlyStopping",
    "ExportAction",
    "MaxTime",
    "NewBestMetric",
    "Preempted",
    "Preemption",
    "Recovery",
    "build_actions",
    "register_action",
    "registered_actions",
]
