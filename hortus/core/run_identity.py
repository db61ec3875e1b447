"""Who a run is: its experiment, the classes of its config, and the modules that these need.

A run's record keeps it, so that the run is opened again as what it was.

A run's folder is data, and may come from somebody else. What it names is looked up, never fetched:
a module is imported only if Python finds it already (the record's paths are shown to the user, and
never added to the Python path; neither is the current folder), modules of Python itself are
refused, and a class counts only if it is a `hyperparams.Config`.
"""

import contextlib
import dataclasses
import functools
import importlib
import operator
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory, task_factory, user_modules


@dataclasses.dataclass(frozen=True)
class RunIdentity:
    """What it takes to make the config of a run again, beside its values."""

    experiment: str = ""
    """Name of the experiment; empty for a config that was made by hand."""
    config_classes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """By the path in the config, `module:Class`. The path of the config itself is empty; of the
    others only those that are not what their parent has by default."""
    modules: tuple[Mapping[str, str], ...] = ()
    """What has to be imported for it: `name`, and `file` where it was found then."""
    engine: str = ""
    """`tensorflow` or `jax`."""

    @classmethod
    def of(cls, params: cfg.ExperimentConfig, engine: str = "") -> "RunIdentity":
        """That of a run which starts now with this config."""
        names = user_modules.foreign([*user_modules.asked(), *_modules_of(params)])
        return cls(
            exp_factory.name_of(params),
            {path: _name_of(type(config)) for path, config in _unusual(params)},
            tuple({"name": name, "file": user_modules.file_of(name)} for name in names),
            engine,
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Optional[RunIdentity]":
        """What `as_dict` gave; None where that is not there or not in order."""
        classes, modules = values.get("config_classes"), values.get("modules")
        if not isinstance(classes, dict) or "" not in classes or not isinstance(modules, list):
            return None
        names = [module.get("name") for module in modules if isinstance(module, dict)]
        texts = [*classes, *classes.values(), values.get("experiment"), values.get("engine")]
        if len(names) < len(modules) or not all(isinstance(text, str) for text in [*texts, *names]):
            return None
        return cls(values["experiment"], classes, tuple(modules), values["engine"])

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "experiment": self.experiment,
            "config_classes": dict(self.config_classes),
            "modules": [dict(module) for module in self.modules],
            "engine": self.engine,
        }

    def load_modules(self) -> None:
        """Imports what the run needs, as far as Python finds it.

        Raises:
            ConfigError: a module is not found, or fails.
        """
        for module in self.modules:
            name = module["name"]
            if name not in sys.modules:
                self._load(name, str(module.get("file") or ""))

    def _load(self, name: str, file: str) -> None:
        if not user_modules.is_name(name):
            raise hyperparams.ConfigError(
                f"the run's record names a module {name!r} to import, which hortus does not do: "
                f"it is no module of a user. {self._way_around}"
            )
        try:
            user_modules.load(name)
        except Exception as error:
            parents = [name.rsplit(".", up)[0] for up in range(name.count(".") + 1)]
            if isinstance(error, ModuleNotFoundError) and error.name in parents:
                raise hyperparams.ConfigError(
                    f"the run needs the module {name}, which Python does not find. "
                    f"{_where(name, file)} {self._way_around}"
                ) from None
            raise hyperparams.ConfigError(
                f"the run needs the module {name}, which cannot be imported: "
                f"{type(error).__name__}: {error}"
            ) from error

    @property
    def _way_around(self) -> str:
        return "A run that can do without it opens when you name an experiment of the same task."

    def new_config(self) -> cfg.ExperimentConfig:
        """A config of these classes with the values that they have by default.

        Raises:
            ConfigError: a class is not there.
        """
        config = self._class("")()
        if not isinstance(config, cfg.ExperimentConfig):
            raise hyperparams.ConfigError(
                f"the run's record names {type(config).__name__} for an ExperimentConfig"
            )
        for path in self.config_classes:
            if path:
                parent, _, name = path.rpartition(".")
                owner = config.get(parent) if parent else config
                if not isinstance(owner, hyperparams.Config):
                    raise hyperparams.ConfigError(
                        f"the run's record names {path}, which is not there"
                    )
                setattr(owner, name, self._class(path)())
        if self.experiment:
            exp_factory.set_name(config, self.experiment)
        return config

    def _class(self, path: str) -> type[hyperparams.Config]:
        name = self.config_classes[path]
        module, _, qualname = name.partition(":")
        found = None
        if module not in sys.modules and _may_import(module):
            with contextlib.suppress(ImportError):  # told below
                importlib.import_module(module)
        if module in sys.modules:
            try:
                found = operator.attrgetter(qualname)(sys.modules[module])
            except AttributeError:
                found = self._of_experiment.get(name)  # made inside a function
        if not (isinstance(found, type) and issubclass(found, hyperparams.Config)):
            raise hyperparams.ConfigError(
                f"the run's config has the class {name}, which is not there: import the module "
                f"that has it first (hortus --import MODULE). {self._way_around}"
            )
        return found

    @functools.cached_property
    def _of_experiment(self) -> dict[str, type]:
        """The classes in the config of the experiment, if that is registered, by name."""
        if self.experiment not in exp_factory.exp_names():
            return {}
        example = exp_factory.get_exp_config(self.experiment)
        return {_name_of(type(config)): type(config) for _, config in _nested(example)}


def _name_of(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _may_import(module: str) -> bool:
    return user_modules.is_name(module) or user_modules.is_own(module)


def _nested(config: hyperparams.Config, path: str = "") -> Iterator[tuple[str, hyperparams.Config]]:
    """A config and all that are fields of it or of them, by path."""
    yield path, config
    for name in config.as_dict():
        value = config.get(name)
        if isinstance(value, hyperparams.Config):
            yield from _nested(value, f"{path}.{name}" if path else name)


def _unusual(params: cfg.ExperimentConfig) -> Iterator[tuple[str, hyperparams.Config]]:
    """The config, and those inside whose class is not the one that their parent has by default."""
    for path, config in _nested(params):
        parent, _, name = path.rpartition(".")
        owner = params.get(parent) if parent else params
        if not path or type(config) is not type(type(owner)().get(name)):
            yield path, config


def _modules_of(params: cfg.ExperimentConfig) -> Iterator[str]:
    """Where the experiment, the classes of its config, and its task are from."""
    name = exp_factory.name_of(params)
    if name in exp_factory.exp_names():
        yield exp_factory.get_exp_factory(name).__module__
    for _, config in _nested(params):
        yield type(config).__module__
    task = task_factory.find_task_cls(type(params.task))
    if task is not None:
        yield task.__module__


def _where(name: str, file: str) -> str:
    """How to make Python find a module that was in `file`."""
    if not file:
        return f"Import it first: hortus --import {name}, in its folder."
    folder = os.path.dirname(file)
    depth = name.count(".") + (os.path.basename(file) == "__init__.py")
    for _ in range(depth):
        folder = os.path.dirname(folder)
    return (
        f"It was {file}. Import it first (hortus --import {name}, in the folder {folder}), or set "
        f"PYTHONPATH={folder}."
    )
