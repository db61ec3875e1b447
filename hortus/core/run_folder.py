"""The folder of a run: every file and folder in it, by what it is for."""

import os
from typing import Union

CHECKPOINT = "ckpt"
"""Checkpoints are folders `ckpt-STEP`."""
BEST_CHECKPOINT = "best_ckpt"
"""The best one is `best_ckpt-STEP`, in a folder that the config names."""
BEST_INFO = "info.json"
"""Beside it: the metrics that made it the best."""


class RunFolder:
    """Where a run keeps what. Nobody else joins these names.

    Nothing is read or written here, and nothing has to be there. Folders that the config names are
    asked for with that name.

    Args:
        path: the folder, `model_dir` of the launchers.
    """

    PARAMS = "params.yaml"
    RECORD = "run.json"
    METRICS = "metrics.jsonl"
    CLASS_NAMES = "class_names.json"
    LOCK = "run.lock"
    REPORT = "report.html"

    def __init__(self, path: "Union[str, os.PathLike[str]]"):
        self.path = os.fspath(path)

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"RunFolder({self.path!r})"

    @property
    def name(self) -> str:
        """Its last part."""
        return os.path.basename(os.path.abspath(self.path))

    # ---- who the run is ---------------------------------------------------------------------

    @property
    def params(self) -> str:
        """The config, as YAML."""
        return self._file(self.PARAMS)

    @property
    def record(self) -> str:
        """How it was started, each time: `core.run_record`."""
        return self._file(self.RECORD)

    @property
    def class_names(self) -> str:
        """The names of the model's classes, a JSON list; not every task has some."""
        return self._file(self.CLASS_NAMES)

    @property
    def lock(self) -> str:
        """There while somebody trains in the folder: `core.run_lock`."""
        return self._file(self.LOCK)

    def gin_config(self, mode: str) -> str:
        """The gin bindings that were used."""
        return self._file(f"operative_config.{mode}.gin")

    # ---- what it has learnt -----------------------------------------------------------------

    def checkpoint(self, step: int) -> str:
        """The checkpoint of a step, a folder."""
        return self._file(f"{CHECKPOINT}-{step}")

    def best(self, subdir: str) -> str:
        """The folder of the best checkpoint."""
        return self._file(subdir)

    def best_info(self, subdir: str) -> str:
        """The metrics of the best checkpoint, as JSON."""
        return os.path.join(self.best(subdir), BEST_INFO)

    @property
    def averages(self) -> str:
        """The folder of checkpoints that hold averaged weights only."""
        return self._file("ema_checkpoints")

    # ---- what came of it --------------------------------------------------------------------

    @property
    def metrics(self) -> str:
        """All metrics of training and evaluation, a line of JSON each."""
        return self._file(self.METRICS)

    @property
    def train_summaries(self) -> str:
        """The folder of training's summaries for TensorBoard."""
        return self._file("train")

    def validation_summaries(self, subdir: str) -> str:
        """The folder of the evaluations' summaries."""
        return self._file(subdir)

    @property
    def early_stopping(self) -> str:
        """The values that early stopping goes by."""
        return self._file("early_stopping.json")

    @property
    def diverged(self) -> str:
        """The folder of batches that made the loss diverge."""
        return self._file("diverged")

    @property
    def report(self) -> str:
        """The page that `hortus report` writes."""
        return self._file(self.REPORT)

    @property
    def predictions(self) -> str:
        """The folder that `hortus predict` writes to unless told otherwise."""
        return self._file("predictions")

    def _file(self, name: str) -> str:
        return os.path.join(self.path, name)
