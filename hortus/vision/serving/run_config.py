"""The config of a run, from the params.yaml in its folder."""

import os
import warnings
from typing import Any, Optional

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory, run_record
from hortus.core.checkpoints import file_kind
from hortus.core.run_folder import RunFolder
from hortus.core.run_identity import RunIdentity
from hortus.vision import experiments  # noqa: F401, so that experiments are registered
from hortus.vision.dataloaders.errors import DataError, near_paths


def read_config(
    folder: "str | os.PathLike[str]", experiment: Optional[str] = None
) -> cfg.ExperimentConfig:
    """What the params.yaml of a run says, as the classes that the run's record names.

    Modules that the record names are imported, if Python finds them. A run of an older hortus has
    no such record: its classes are guessed, with a warning.

    Args:
        folder: of the run.
        experiment: name of an experiment of the same task, to go by instead of the record.

    Raises:
        DataError: there is no such file.
        ConfigError: a module or a class is not there, or the values fit no registered experiment.
    """
    run = RunFolder(folder)
    if not os.path.isfile(run.params):
        if kind := file_kind.what_is(os.fspath(run)):
            raise DataError(f"{run} is {kind}, and no run: expected the model_dir of a training")
        what = (
            f"has no {run.PARAMS}, so that it is no run" if os.path.isdir(run) else "is not there"
        )
        raise DataError(
            f"{run} {what}: expected the model_dir of a training{near_paths(run.params)}"
        )
    values = hyperparams.load_overrides(run.params)
    identity = run_record.identity(run)
    if identity is not None and experiment is None:
        identity.load_modules()
    return config_of(values, run.params, experiment, identity)


def config_of(
    values: Any,
    origin: str,
    experiment: Optional[str] = None,
    identity: Optional[RunIdentity] = None,
) -> cfg.ExperimentConfig:
    """The config that has these values, see `read_config`.

    Args:
        values: a mapping, or `hyperparams.Overrides`.
        origin: where they come from, for messages.
        experiment: see `read_config`.
        identity: who the run is; None leaves it to a guess.
    """
    if experiment is not None:
        return _guess(values, origin, experiment)
    if identity is not None:
        config = identity.new_config()
        config.override(values)
        return config
    config = _guess(values, origin)
    warnings.warn(
        f"{origin}: there is no record of the classes of this config, as an older hortus wrote "
        f"none. Taken for {type(config.task).__name__}, which its values fit best; name its "
        "experiment where that is wrong.",
        hyperparams.ConfigWarning,
        stacklevel=2,
    )
    return config


def _guess(values: Any, origin: str, experiment: Optional[str] = None) -> cfg.ExperimentConfig:
    """The config of the experiment's classes, or else of those that the values fit best.

    Values fit the config of one task only: the first among those of the registered experiments that
    takes them all and has no further fields.
    """
    plain = values.values if isinstance(values, hyperparams.Overrides) else values
    failures: dict[str, str] = {}
    names = exp_factory.exp_names() if experiment is None else [experiment]
    seen = set()
    fitting: list[tuple[int, cfg.ExperimentConfig]] = []
    for name in names:
        example = exp_factory.get_exp_config(name)
        kinds = (type(example), type(example.task))
        if kinds in seen:
            continue
        seen.add(kinds)
        config = kinds[0](task=kinds[1]())
        try:
            config.override(values)
        except hyperparams.ConfigError as error:
            failures[kinds[1].__name__] = str(error)
            continue
        # A more general task takes the values of a special one only if it has all its fields, but
        # a special one may take those of a general one: then it has fields that the file lacks.
        missing = len(config.task.as_dict().keys() ^ plain.get("task", {}).keys())
        fitting.append((missing, config))
    if not fitting:
        if experiment is not None:
            reason = f"does not fit the experiment {experiment}: {next(iter(failures.values()))}"
        else:
            reason = (
                f"fits none of the tasks {', '.join(failures)}. For a task of your own, import its "
                "module first (hortus --import MODULE)"
            )
        raise hyperparams.ConfigError(f"{origin}: {reason}")
    return min(fitting, key=lambda found: found[0])[1]
