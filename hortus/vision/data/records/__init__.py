"""Turning data sets into records of `tf.train.Example`.

What they hold is a matter of the task, see `hortus.vision.data.tools`: one serialised example per
image, in order, read from whatever a data config of the task points to.
"""

from collections.abc import Iterator
from typing import Any

from hortus.vision.dataloaders.dataset_info import DatasetInfo


def examples(params: Any, task_config: Any) -> Iterator[bytes]:
    """Yields the serialised examples of a data set.

    Args:
        params: which data; one of the data configs of the task.
        task_config: whose data it is.

    Raises:
        DataError: such data cannot be turned into records, or it cannot be read.
    """
    from hortus.vision.data.of_config import tools_for

    yield from tools_for(task_config).examples(params)


def info(params: Any, task_config: Any) -> DatasetInfo:
    """What is known of a data set before its examples are read; perhaps nothing."""
    from hortus.vision.data.of_config import tools_for

    return tools_for(task_config).info(params)
