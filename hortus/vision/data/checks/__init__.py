"""Looking for faults in a data set before training meets them.

What is looked for is a matter of the task, see `hortus.vision.data.tools`. The modules here look
at `task_config.train_data` and `.validation_data`, either of which may be unset.
"""

from collections.abc import Iterator
from typing import Any

from hortus.vision.data.checks.findings import LEVELS, Finding, Level, worst

__all__ = ["LEVELS", "Finding", "Level", "check", "worst"]


def check(task_config: Any) -> Iterator[Finding]:
    """Yields what is found in the data of a task, as it is found.

    Raises:
        DataError: there are no checks for such a task.
    """
    from hortus.vision.data.of_config import tools_for

    yield from tools_for(task_config).check()
