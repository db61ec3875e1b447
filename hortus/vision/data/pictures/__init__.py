"""Pictures of what a model sees in training: augmented, with the labels drawn.

A module per kind of data has `pictures(params, task_config, count) -> list[PIL.Image.Image]`.
"""

from typing import Any

from PIL import Image

from hortus.vision.data import kinds


def pictures(params: Any, task_config: Any, count: int) -> list[Image.Image]:
    """Draws the first examples of a data set, as its pipeline prepares them.

    Args:
        params: which data; one of the data configs of the task.
        task_config: whose data it is.
        count: number of pictures; fewer if the data has no more.

    Raises:
        DataError: there are no pictures of such data, or it cannot be read.
    """
    return kinds.module_for(__name__, task_config).pictures(params, task_config, count)
