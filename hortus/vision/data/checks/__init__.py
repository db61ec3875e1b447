"""Looking for faults in a data set before training meets them.

A module per kind of data has `check(task_config) -> Iterator[Finding]`. It looks at
`task_config.train_data` and `.validation_data`, either of which may be unset.
"""

from collections.abc import Iterator
from typing import Any

from hortus.vision.data import kinds
from hortus.vision.data.checks.findings import LEVELS, Finding, Level, worst

__all__ = ["LEVELS", "Finding", "Level", "check", "worst"]


def check(task_config: Any) -> Iterator[Finding]:
    """Yields what is found in the data of a task, as it is found.

    Raises:
        DataError: there are no checks for such a task.
    """
    yield from kinds.module_for(__name__, task_config).check(task_config)
