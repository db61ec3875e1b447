"""A trained model, from the folder of its run."""

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from hortus import engine, hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import run_record
from hortus.core.run_folder import RunFolder
from hortus.vision.serving.run_config import read_config

BEST, LATEST = "best", "latest"


@dataclasses.dataclass(frozen=True)
class LoadedRun:
    """The model that a training has left behind, ready to be used."""

    folder: str
    """As it was given."""
    params: cfg.ExperimentConfig
    """The config of the training."""
    task: Any
    """The task, a `hortus.core.base_task.Task`."""
    model: Any
    """The Keras model, with the weights that an evaluation would use."""
    class_names: tuple[str, ...]
    """In the order of the numbers; from 1 for detection. Empty where the data named none."""
    checkpoint: str
    """Folder that the weights are from."""
    step: int
    """Training step of the weights."""


def load_run(
    model_dir: "str | os.PathLike[str]",
    checkpoint: str = BEST,
    *,
    experiment: Optional[str] = None,
    in_float32: bool = False,
    overrides: Sequence[str] = (),
) -> LoadedRun:
    """Builds the model of a run and gives it its weights, on the engine of this process.

    Where none is settled yet, KERAS_BACKEND decides, and without it the engine of the run: a
    checkpoint can be read by both.

    Args:
        model_dir: folder of the run.
        checkpoint: `best`, the exported best one where the run keeps one, else the newest;
            `latest`; or the path of a checkpoint. Where the run averages its weights, the average
            is taken, as in evaluation.
        experiment: see `read_config`.
        in_float32: compute in float32 also where the run was trained in mixed precision, or on
            images in half precision.
        overrides: of the run's config, as text (`task.export_config.rescale_output=true`).

    Raises:
        DataError, ConfigError: the folder is not that of a run.
        CheckpointError: there is no checkpoint, or it is damaged or of another model.
    """
    folder = os.fspath(model_dir)
    identity = run_record.identity(folder)
    if identity is not None and experiment is None:
        settle_engine(identity.engine)  # before its modules are imported, which may load Keras
    params = read_config(folder, experiment)
    for text in overrides:
        params.override(hyperparams.parse_overrides(text, "overrides"))
    if overrides:
        params.validate()
    # Images too, where a config says of which type: few runtimes know bfloat16, and converters
    # round otherwise.
    if in_float32 and "dtype" in params.task.validation_data.as_dict():
        params.override({"task": {"validation_data": {"dtype": "float32"}}})
    settle_engine(params.runtime.engine)
    # Only now: these load Keras, which must know the engine first.
    from hortus.core import checkpoints, task_factory
    from hortus.vision import registry_imports
    from hortus.vision.dataloaders import dataset_info

    registry_imports.load_tasks()
    path = _find_checkpoint(folder, checkpoint, params)
    task = task_factory.get_task(params.task, logging_dir=folder)
    dtype = None if in_float32 else params.runtime.mixed_precision_dtype
    with _precision(dtype):
        model = task.build_model()
    step = _restore(path, task, model, params, checkpoints)
    names = dataset_info.read_class_names(folder)
    return LoadedRun(folder, params, task, model, names, path, step)


def settle_engine(wanted: Optional[str] = None) -> None:
    """Loads the engine: the one of this process, of KERAS_BACKEND, or `wanted`."""
    if "keras" not in sys.modules:
        engine.select(None if os.environ.get("KERAS_BACKEND") else wanted)
    engine.load()


@contextlib.contextmanager
def _precision(dtype: Optional[str]) -> Iterator[None]:
    """Layers made inside compute in this precision; afterwards everything is as before."""
    import keras

    from hortus.core import performance

    former = keras.config.dtype_policy()
    performance.set_mixed_precision_policy(dtype)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(former)


def _find_checkpoint(folder: str, wanted: str, params: cfg.ExperimentConfig) -> str:
    from hortus.core.checkpoints import best_exporter, errors, store

    if wanted == BEST:
        subfolder = params.trainer.best_checkpoint_export_subdir
        best = best_exporter.find_best(RunFolder(folder).best(subfolder)) if subfolder else None
        if best is not None:
            return best
    if wanted in (BEST, LATEST):
        found = store.find_valid(folder)
        if found:
            return found[-1][1]
        raise errors.CheckpointError(
            f"there is no checkpoint in {folder}: train first, or name one by its path"
        )
    for path in (wanted, os.path.join(folder, wanted)):
        if os.path.exists(path) or os.path.exists(path + ".index"):
            return path
    near = [BEST, LATEST, *(os.path.basename(path) for _, path in store.find(folder))]
    raise errors.CheckpointError(
        f"there is no checkpoint {wanted}: expected a path, or one of {', '.join(near)}"
    )


def _restore(
    path: str, task: Any, model: Any, params: cfg.ExperimentConfig, checkpoints: Any
) -> int:
    """Gives the model its weights, averaged where the checkpoint has the average; returns the step.

    An exported best checkpoint holds the weights that were evaluated, which are averaged already.
    """
    from hortus.core import base_trainer
    from hortus.core.checkpoints import manifest, store

    if not os.path.isfile(os.path.join(path, manifest.NAME)):
        report = checkpoints.load_modules(model, path)
        if report.missing or report.skipped:
            raise checkpoints.CheckpointError(f"{path} does not hold all of the model:\n{report}")
        return 0
    stored = store.StoredCheckpoint.open(path)
    items: dict[str, Any] = {"model": model}
    average = None
    if params.trainer.optimizer_config.ema is not None and "optimizer" in stored.manifest.items:
        optimizer = task.create_optimizer(
            params.trainer.optimizer_config,
            params.runtime,
            params.task.differential_privacy_config,
        )
        average = base_trainer.average_of(optimizer)
        assert average is not None  # the config has one
        average.shadow_copy(model)
        optimizer.build(model.trainable_variables)
        items["optimizer"] = optimizer
    step = checkpoints.Checkpoint(**items).restore_stored(stored)
    if average is not None:
        average.swap_weights()
    return step
