"""BestCheckpointExporter: keeps the checkpoint with the best evaluation so far."""

import json
import math
import os
import warnings
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from hortus import hyperparams
from hortus.core.checkpoints import atomic_folder, store
from hortus.core.checkpoints.checkpoint import Checkpoint
from hortus.core.checkpoints.errors import (
    CheckpointError,
    CheckpointWarning,
    MisnamedCheckpointError,
    explain_os_errors,
)
from hortus.core.run_folder import BEST_CHECKPOINT, BEST_INFO

INFO = BEST_INFO
PREFIX = BEST_CHECKPOINT
_STEP, _NAME = "best_ckpt_global_step", "best_ckpt_name"


class BestCheckpointExporter:
    """Saves a checkpoint whenever a metric of the evaluation is better than ever before.

    The folder holds `best_ckpt-<step>` and `info.json` with the logs of its evaluation. Both are
    replaced as one: until the new `info.json` is in place, the old one and its checkpoint are. A
    new exporter for the same folder goes on from there.

    Args:
        export_dir: the folder.
        metric_name: name in the evaluation's logs; parts of a nested name are separated by "|".
        metric_comp: "higher" or "lower", whichever is better.
        is_chief: whether this host writes. All hosts have to call it alike.
    """

    def __init__(
        self, export_dir: Any, metric_name: str, metric_comp: str, *, is_chief: bool = True
    ) -> None:
        if metric_comp not in ("higher", "lower"):
            raise ValueError(f"metric_comp is {metric_comp!r}, expected 'higher' or 'lower'")
        if not metric_name:
            raise ValueError("metric_name is empty: name the metric to compare checkpoints by")
        self._export_dir = os.path.abspath(os.fspath(export_dir))
        self._metric_name = metric_name
        self._metric_comp = metric_comp
        self._is_chief = is_chief
        self._best_logs: Optional[dict[str, Any]] = None
        self._is_read = False

    @property
    def best_ckpt_logs(self) -> Optional[dict[str, Any]]:
        """The logs of the best evaluation so far, with its step; None before the first."""
        if not self._is_read:
            self._best_logs = read_info(self._export_dir)
            self._is_read = True
        return self._best_logs

    @property
    def best_ckpt_path(self) -> Optional[str]:
        """The folder of the best checkpoint; None if there is none."""
        return find_best(self._export_dir)

    def maybe_export_checkpoint(
        self,
        checkpoint: Checkpoint,
        eval_logs: Mapping[str, Any],
        global_step: int,
        write_logs: bool = True,
    ) -> bool:
        """Exports `checkpoint` if `eval_logs` are the best so far. NaN never is.

        Args:
            checkpoint: what to save.
            eval_logs: metric names to numbers, possibly in nested dicts.
            global_step: the training step.
            write_logs: whether to write `info.json` too.

        Returns:
            Whether these are the best logs so far.

        Raises:
            CheckpointError: the metric is not in the logs, or nothing could be written.
        """
        value = self._metric(eval_logs)
        best = self.best_ckpt_logs
        if math.isnan(value) or (best is not None and not self._is_better(value, best)):
            return False
        step = int(global_step)
        name = store.folder_name(step, PREFIX)
        if self._is_chief:
            checkpoint.save(os.path.join(self._export_dir, name), step)
        else:
            checkpoint.join_reading()
        if write_logs:
            self.export_best_eval_metric(eval_logs, step)
        else:
            self._best_logs = _plain(eval_logs) | {_STEP: step, _NAME: name}
        if self._is_chief:
            self._remove_others(name)
        return True

    def export_best_eval_metric(self, eval_logs: Mapping[str, Any], global_step: int) -> None:
        """Writes `info.json` for the evaluation of the checkpoint of this step."""
        name = store.folder_name(int(global_step), PREFIX)
        self._best_logs = _plain(eval_logs) | {_STEP: int(global_step), _NAME: name}
        self._is_read = True
        if not self._is_chief:
            return
        path = os.path.join(self._export_dir, INFO)
        with explain_os_errors(f"write {path}", self._export_dir):
            os.makedirs(self._export_dir, exist_ok=True)
            text = json.dumps(self._best_logs, indent=2) + "\n"
            atomic_folder.replace_file(path, text.encode())

    def _is_better(self, value: float, best: Mapping[str, Any]) -> bool:
        try:
            before = self._metric(best)
        except CheckpointError as error:
            raise CheckpointError(
                f"{os.path.join(self._export_dir, INFO)} is of an evaluation without this metric: "
                f"{error} Delete the folder, or export to another one."
            ) from error
        if math.isnan(before):
            return True
        return value > before if self._metric_comp == "higher" else value < before

    def _metric(self, logs: Mapping[str, Any]) -> float:
        found: Any = logs
        for part in self._metric_name.split("|"):
            if not isinstance(found, Mapping) or part not in found:
                known = [name for name in _paths(logs) if name not in (_STEP, _NAME)]
                raise CheckpointError(
                    f"the metric {self._metric_name!r} is not in the logs of the evaluation."
                    + hyperparams.did_you_mean(self._metric_name, known)
                )
            found = found[part]
        try:
            return float(np.asarray(found, "float64").item())
        except (TypeError, ValueError):
            inner = f" Inside of it: {', '.join(_paths(found))}." if _is_nested(found) else ""
            raise CheckpointError(
                f"the metric {self._metric_name!r} is not one number but a "
                f"{type(found).__name__}.{inner}"
            ) from None

    def _remove_others(self, name: str) -> None:
        atomic_folder.clean_up(self._export_dir)
        for _, path in store.find(self._export_dir, PREFIX):
            if os.path.basename(path) != name:
                atomic_folder.remove(path)


def find_best(export_dir: str) -> Optional[str]:
    """The best checkpoint in a folder of an exporter, or None.

    It is the one that `info.json` names, else the newest. One whose content is of another step than
    its name says is left out with a warning.
    """
    info = read_info(export_dir) or {}
    found = dict(store.find(export_dir, PREFIX))
    named = [step for step in found if store.folder_name(step, PREFIX) == info.get(_NAME)]
    for step in (*named, *sorted(found, reverse=True)):
        try:
            store.StoredCheckpoint.open_found(step, found[step])
        except MisnamedCheckpointError as error:
            warnings.warn(f"A checkpoint is misnamed: {error}", CheckpointWarning, stacklevel=2)
            continue
        except CheckpointError:
            pass  # whoever opens it tells what is wrong with it
        return found[step]
    return None


def read_info(export_dir: str) -> Optional[dict[str, Any]]:
    """What `info.json` of a folder says, or None if there is none.

    Raises:
        CheckpointError: it cannot be read. Starting over would lose the best checkpoint.
    """
    path = os.path.join(export_dir, INFO)
    try:
        with open(path, encoding="utf-8") as file:
            info = json.load(file)
        if not isinstance(info, dict):
            raise ValueError("it holds no object")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{path} cannot be read ({error}). Mend it, or delete it to choose the best checkpoint "
            "anew."
        ) from error
    return info


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping)


def _paths(logs: Mapping[str, Any]) -> list[str]:
    found = []
    for name, value in logs.items():
        found += [f"{name}|{rest}" for rest in _paths(value)] if _is_nested(value) else [str(name)]
    return found


def _plain(logs: Mapping[str, Any]) -> dict[str, Any]:
    """What of the logs JSON can hold: numbers, texts and small lists, not images."""
    plain: dict[str, Any] = {}
    for name, value in logs.items():
        if _is_nested(value):
            plain[str(name)] = _plain(value)
        elif isinstance(value, (str, bool, int, float)) or value is None:
            plain[str(name)] = value
        else:
            array = np.asarray(value)
            if array.dtype.kind in "biuf" and array.size <= 1000:
                plain[str(name)] = array.tolist()
    return plain
