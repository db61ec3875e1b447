"""Turning data sets into records of `tf.train.Example`.

A module per kind of data has `examples(params, task_config) -> Iterator[bytes]`: one serialised
example per image, in order, read from whatever `params`, a data config of the task, points to. It
may have `info(params, task_config) -> DatasetInfo`, for classes and size.
"""

from collections.abc import Iterator
from typing import Any

from hortus.vision.data import kinds
from hortus.vision.dataloaders.dataset_info import DatasetInfo


def examples(params: Any, task_config: Any) -> Iterator[bytes]:
    """Yields the serialised examples of a data set.

    Args:
        params: which data; one of the data configs of the task.
        task_config: whose data it is.

    Raises:
        DataError: such data cannot be turned into records, or it cannot be read.
    """
    yield from kinds.module_for(__name__, task_config).examples(params, task_config)


def info(params: Any, task_config: Any) -> DatasetInfo:
    """What is known of a data set before its examples are read; perhaps nothing."""
    module = kinds.module_for(__name__, task_config)
    return module.info(params, task_config) if hasattr(module, "info") else DatasetInfo()
