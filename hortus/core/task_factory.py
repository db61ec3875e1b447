"""From a task's config to the task: the class of the config decides.

@task_factory.register_task_cls(FlowerTask)      # a cfg.TaskConfig
class FlowerClassification(base_task.Task): ...

task = task_factory.get_task(params.task, logging_dir=model_dir)
"""

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from hortus import registry
from hortus.core import config_definitions as cfg

_TaskClass = TypeVar("_TaskClass", bound=Callable[..., Any])

_TASKS = registry.Registry("task for the config")


def register_task_cls(
    task_config_cls: type[cfg.TaskConfig],
) -> Callable[[_TaskClass], _TaskClass]:
    """Returns a decorator that registers a task class for `task_config_cls`.

    The class is called with the config as its first argument, and with the keyword arguments of
    `get_task`.

    Raises:
        RegistryError: the config class has a task already.
    """
    return registry.register(_TASKS, task_config_cls)


def get_task(task_config: cfg.TaskConfig, **kwargs: Any) -> Any:
    """Returns the task for a config, made from the config and `kwargs`."""
    return get_task_cls(type(task_config))(task_config, **kwargs)


def get_task_cls(task_config_cls: type[cfg.TaskConfig]) -> Any:
    """Returns the task class for a config class, or for the nearest of its bases that has one.

    Raises:
        RegistryError: no task is registered for the class or a base of it.
    """
    if task_config_cls.task_module:
        importlib.import_module(task_config_cls.task_module)
    found = find_task_cls(task_config_cls)
    return registry.lookup(_TASKS, task_config_cls) if found is None else found


def has_task(task_config_cls: type[cfg.TaskConfig]) -> bool:
    """Whether there is a task for a config class. None is loaded to know it."""
    return bool(task_config_cls.task_module) or find_task_cls(task_config_cls) is not None


def find_task_cls(task_config_cls: type[cfg.TaskConfig]) -> Any:
    """As `get_task_cls`, but None where there is no task, or none is loaded yet."""
    return registry.find_for(_TASKS, task_config_cls)
