"""What a training driver does around a run: read its config, and write down what was used."""

import json
import os
from collections.abc import Iterable
from typing import Any

from absl import logging

from hortus import hyperparams
from hortus.core import atomic_file
from hortus.core import config_definitions as cfg
from hortus.core.exp_parser import ParseConfigOptions, parse_config
from hortus.core.run_folder import RunFolder
from hortus.hyperparams.diff import ABSENT

__all__ = [
    "ParseConfigOptions",
    "changes_since_last_run",
    "parse_configuration",
    "save_class_names",
    "save_gin_config",
    "serialize_config",
]


def parse_configuration(
    flags_obj: Any, lock_return: bool = True, print_return: bool = True
) -> cfg.ExperimentConfig:
    """Returns the config that the flags of `hortus.core.flags` ask for.

    Args:
        flags_obj: absl's FLAGS, or anything with the same attributes; all but `experiment` may be
            absent.
        lock_return: Whether the config is locked.
        print_return: Whether the config is logged.

    Raises:
        RegistryError: there is no such experiment.
        ConfigError: a file or an override is wrong, or values contradict each other.
    """
    if not getattr(flags_obj, "experiment", None):
        raise ValueError("the flag experiment is missing: name a registered experiment")
    config = parse_config(
        ParseConfigOptions(
            experiment=flags_obj.experiment,
            config_file=getattr(flags_obj, "config_file", None) or (),
            tpu=getattr(flags_obj, "tpu", None),
            tf_data_service=getattr(flags_obj, "tf_data_service", None),
            params_override=getattr(flags_obj, "params_override", None) or (),
        ),
        lock=lock_return,
    )
    if print_return:
        logging.info("Config of this run:\n%s", config.to_yaml())
    return config


def serialize_config(params: cfg.ExperimentConfig, model_dir: "str | os.PathLike[str]") -> str:
    """Writes the config to `model_dir`/params.yaml, whole or not at all; returns the path.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    path = RunFolder(model_dir).params
    logging.info("Writing the config to %s", path)
    atomic_file.replace(path, params.to_yaml().encode())
    return path


def save_class_names(names: Iterable[str], model_dir: "str | os.PathLike[str]") -> str:
    """Writes the names of the model's classes, for whoever uses it; returns the path.

    Args:
        names: in the order of the classes' numbers.
        model_dir: the folder of the run.
    """
    path = RunFolder(model_dir).class_names
    text = json.dumps([str(name) for name in names], indent=1, ensure_ascii=False)
    atomic_file.replace(path, f"{text}\n".encode())
    return path


def changes_since_last_run(
    params: cfg.ExperimentConfig, model_dir: "str | os.PathLike[str]"
) -> list[str]:
    """What a resumed run does otherwise than the one that wrote `model_dir`/params.yaml.

    Returns:
        One line per value that differs; none for a new folder, or one that cannot be read.
    """
    path = RunFolder(model_dir).params
    if not os.path.exists(path):
        return []
    try:
        former = hyperparams.Config.from_yaml(path)
    except hyperparams.ConfigError as error:
        return [f"The config of the last run cannot be read: {error}"]
    # What YAML cannot tell apart, such as lists and tuples, has not changed.
    now = hyperparams.Config(hyperparams.parse_overrides(params.to_yaml()).values)
    return [
        f"Changed since the last run: {change.path} was {change.old!r}, is {change.new!r}"
        for change in hyperparams.diff(now, former)
        if change.old is not ABSENT or not _is_default(params, change.path)
    ]


def _is_default(params: cfg.ExperimentConfig, path: str) -> bool:
    """Whether nobody has set a value: one that a newer hortus has brought along is no change."""
    return params.origin(path) == hyperparams.Origin("default")


def save_gin_config(filename_suffix: str, model_dir: "str | os.PathLike[str]") -> str:
    """Writes the gin bindings that this run used to `model_dir`/operative_config.SUFFIX.gin.

    Raises:
        ImportError: gin-config is not installed.
        OSError: the folder cannot be made or written to.
    """
    try:
        import gin
    except ImportError:
        raise ImportError(
            "gin-config is not installed; it comes with the engines: pip install 'hortus[cpu]'"
        ) from None
    path = RunFolder(model_dir).gin_config(filename_suffix)
    atomic_file.replace(path, gin.operative_config_str().encode())
    return path
