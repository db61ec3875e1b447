"""The config of a run, from the params.yaml in its folder."""

import os
from typing import Any, Optional

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory
from hortus.vision import experiments  # noqa: F401, so that experiments are registered
from hortus.vision.dataloaders.errors import DataError, near_paths

FILE = "params.yaml"


def read_config(folder: str, experiment: Optional[str] = None) -> cfg.ExperimentConfig:
    """What `folder`/params.yaml says, as the config class of its task.

    The file does not name its experiment. Its values fit the config of one task only: the first
    among those of the registered experiments that takes them all and has no further fields.

    Args:
        folder: of the run.
        experiment: name of an experiment of the same task, where the values alone do not tell.

    Raises:
        DataError: there is no such file.
        ConfigError: it fits no registered experiment.
    """
    path = os.path.join(folder, FILE)
    if not os.path.isfile(path):
        what = (
            "has no params.yaml, so that it is no run" if os.path.isdir(folder) else "is not there"
        )
        raise DataError(
            f"{folder} {what}: expected the --model_dir of a training{near_paths(path)}"
        )
    return config_of(hyperparams.load_overrides(path), path, experiment)


def config_of(values: Any, origin: str, experiment: Optional[str] = None) -> cfg.ExperimentConfig:
    """The config that has these values, see `read_config`.

    Args:
        values: a mapping, or `hyperparams.Overrides`.
        origin: where they come from, for messages.
        experiment: see `read_config`.
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
                f"fits none of the tasks {', '.join(failures)}. For a task of your own, have its "
                "module imported: --import MODULE"
            )
        raise hyperparams.ConfigError(f"{origin}: {reason}")
    return min(fitting, key=lambda found: found[0])[1]
