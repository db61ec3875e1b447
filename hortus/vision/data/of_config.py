"""From a task's config to the tools for its data, by way of the task.

The one module here that knows of tasks: they stand above the tools that they make.
"""

from typing import Any

from hortus.core import task_factory
from hortus.vision import registry_imports
from hortus.vision.data.tools.data_tools import DataTools, tools_of


def tools_for(task_config: Any) -> DataTools:
    """The tools of the task that is registered for a config; no model is built.

    Raises:
        DataError: the task has none.
        RegistryError: no task is registered for the config.
    """
    registry_imports.load_tasks()
    return tools_of(task_factory.get_task(task_config))
