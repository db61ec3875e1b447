"""Experiments by name: functions that return a fresh ExperimentConfig.

    @exp_factory.register_config_factory("flowers_resnet")
    def flowers_resnet() -> cfg.ExperimentConfig:
        '''ResNet-50 on the flowers set.'''
        return cfg.ExperimentConfig(task=..., trainer=..., restrictions=[...])

A factory takes no arguments, imports no numerical library, and states what differs from the
defaults. The first line of its docstring is what `hortus list experiments` shows.
"""

from collections.abc import Callable
from typing import TypeVar

from hortus import hyperparams, registry
from hortus.core import config_definitions as cfg

ConfigFactory = Callable[[], cfg.ExperimentConfig]
_Factory = TypeVar("_Factory", bound=ConfigFactory)

_FACTORIES = registry.Registry("experiment")


def register_config_factory(name: str) -> Callable[[_Factory], _Factory]:
    """Returns a decorator that registers an experiment under `name`.

    Raises:
        RegistryError: the name is taken.
    """
    return registry.register(_FACTORIES, name)


def get_exp_config(exp_name: str) -> cfg.ExperimentConfig:
    """Returns a new config of the experiment, free to be changed.

    What the experiment sets is stamped with `experiment NAME` as its origin.

    Raises:
        RegistryError: there is no such experiment; a `LookupError` that lists near names.
    """
    config = get_exp_factory(exp_name)()
    config.stamp(hyperparams.Origin(f"experiment {exp_name}"))
    set_name(config, exp_name)
    return config


def name_of(config: cfg.ExperimentConfig) -> str:
    """The experiment that a config comes from; empty for one that was made by hand."""
    return config.__dict__.get("_experiment", "")


def set_name(config: cfg.ExperimentConfig, exp_name: str) -> None:
    """Says which experiment a config comes from; its copies know it, too."""
    config.__dict__["_experiment"] = exp_name


def get_exp_factory(exp_name: str) -> ConfigFactory:
    """Returns the function that was registered under `exp_name`."""
    return registry.lookup(_FACTORIES, exp_name)


def exp_names() -> list[str]:
    """Returns the names of all registered experiments, sorted."""
    return sorted(str(name) for name in _FACTORIES)
