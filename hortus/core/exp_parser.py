"""From an experiment's name, files and overrides to one checked and locked config."""

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory


@dataclasses.dataclass
class ParseConfigOptions:
    """What a config is made of. Later parts win over earlier ones, in the order given here."""

    experiment: str
    """Name of a registered experiment."""
    config_file: Union[str, Sequence[str]] = ()
    """YAML or JSON files, merged one after the other."""
    tpu: Optional[str] = None
    """Sets `runtime.tpu`."""
    tf_data_service: Optional[str] = None
    """Sets `tf_data_service_address` of the training and the validation data."""
    params_override: Union[str, Sequence[str]] = ()
    """`a.b=1,c.d=[2, 3]`, YAML or JSON text; several of them are merged one after the other."""
    strict_override: bool = True
    """Whether an unknown key is an error; otherwise it is added, with a warning."""


def parse_config(options: ParseConfigOptions, lock: bool = True) -> cfg.ExperimentConfig:
    """Returns the config that `options` ask for, validated, and locked unless `lock` is False.

    Warns of values that files or flags set in a branch which `type` does not choose.

    Raises:
        RegistryError: there is no such experiment.
        ConfigError: a file or an override is wrong, or values contradict each other.
    """
    config = exp_factory.get_exp_config(options.experiment)
    for overrides in _overrides(options):
        config.override(overrides, options.strict_override)
    config.validate()
    for message in _unused_branches(config):
        warnings.warn(message, hyperparams.ConfigWarning, stacklevel=2)
    if lock:
        config.lock()
    return config


def _overrides(options: ParseConfigOptions) -> Iterator[hyperparams.Overrides]:
    for path in _several(options.config_file):
        yield hyperparams.load_overrides(path)
    if options.tpu:
        yield _flag("--tpu", {"runtime": {"tpu": options.tpu}})
    if options.tf_data_service:
        data = {"tf_data_service_address": options.tf_data_service}
        yield _flag("--tf_data_service", {"task": {"train_data": data, "validation_data": data}})
    for text in _several(options.params_override):
        yield hyperparams.parse_overrides(text, "--params_override")


def _several(value: Union[str, Sequence[str], None]) -> Sequence[str]:
    if value is None or value == "":
        return ()
    return (value,) if isinstance(value, str) else value


def _flag(name: str, values: dict[str, Any]) -> hyperparams.Overrides:
    return hyperparams.Overrides(values, {}, hyperparams.Origin(name))


def _unused_branches(config: cfg.ExperimentConfig) -> Iterator[str]:
    """What a user set in a branch of a OneOfConfig that is not the chosen one."""
    for leaf in hyperparams.walk(config):
        choice = leaf.owner
        if leaf.name != "type" or not isinstance(choice, hyperparams.OneOfConfig):
            continue
        for branch in choice.choices():
            origin = choice.origin(branch)
            if branch != choice.type and origin.is_explicit and getattr(choice, branch) is not None:
                path = leaf.path.removesuffix("type") + branch
                chosen = f"{leaf.path} is {choice.type!r} ({leaf.origin})"
                yield f"{path} ({origin}) has no effect: {chosen}"
