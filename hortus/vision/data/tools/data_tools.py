"""What can be done with the data of a task, beside training on it.

A task makes its tools itself, in `Task.build_data_tools`; a subclass inherits them.
"""

from collections.abc import Iterator
from typing import Any

from PIL import Image

from hortus.vision.data.checks.findings import Finding
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError


class DataTools:
    """The base class: a subclass replaces what its data can do, the rest says that it cannot.

    Methods import what they need when they are called: whoever checks data has no need of records.

    Args:
        task_config: of the task, with its `train_data` and `validation_data`.
    """

    def __init__(self, task_config: Any):
        self.task_config = task_config

    def check(self) -> Iterator[Finding]:
        """Yields what is found in `train_data` and `validation_data`, either of which may be unset.

        Raises:
            DataError: there are no checks of such data.
        """
        raise self._missing("checked", "check")

    def pictures(self, params: Any, count: int) -> list[Image.Image]:
        """Draws the first examples of a data set as the model sees them, with their labels.

        Args:
            params: which data; one of the data configs of the task.
            count: number of pictures; fewer if the data has no more.

        Raises:
            DataError: there are no pictures of such data, or it cannot be read.
        """
        raise self._missing("drawn", "pictures")

    def examples(self, params: Any) -> Iterator[bytes]:
        """Yields one serialised `tf.train.Example` per image, in order.

        Args:
            params: which data; one of the data configs of the task.

        Raises:
            DataError: such data cannot be turned into records, or it cannot be read.
        """
        raise self._missing("converted to records", "examples")

    def info(self, params: Any) -> DatasetInfo:
        """What is known of a data set before its examples are read; by default nothing.

        Args:
            params: which data; one of the data configs of the task.
        """
        del params
        return DatasetInfo()

    def _missing(self, what: str, method: str) -> DataError:
        data, own = type(self.task_config).__name__, type(self).__name__
        return DataError(
            f"the data of {data} cannot be {what}: {own} does not replace DataTools.{method}"
        )


def tools_of(task: Any) -> DataTools:
    """The tools that a task makes.

    Args:
        task: a `hortus.core.base_task.Task`.

    Raises:
        DataError: the task has none.
    """
    tools = task.build_data_tools()
    if tools is None:
        name = type(task).__name__
        raise DataError(
            f"{name} does not say how its data is checked, drawn and converted: return a "
            f"hortus.vision.data.tools.data_tools.DataTools from {name}.build_data_tools"
        )
    return tools
