"""Pictures of what a model sees in training: augmented, with the labels drawn.

How they are drawn is a matter of the task, see `hortus.vision.data.tools`.
"""

import contextlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from hortus.vision.visualization.contact_sheet import draw_contact_sheet

_SHEET_WIDTH, _LARGEST = 1600, 512
"""Of a sheet and of a picture on it, in pixels, about."""


def pictures(params: Any, task_config: Any, count: int) -> list[Image.Image]:
    """Draws the first examples of a data set, as its pipeline prepares them.

    Args:
        params: which data; one of the data configs of the task.
        task_config: whose data it is.
        count: number of pictures; fewer if the data has no more.

    Raises:
        DataError: there are no pictures of such data, or it cannot be read.
    """
    from hortus.vision.data.of_config import tools_for

    return tools_for(task_config).pictures(params, count)


def write_sheet(drawn: Sequence[Image.Image], path: str) -> None:
    """Writes pictures on one sheet, as a PNG file that is there whole or not at all."""
    size = min(max(max(picture.size) for picture in drawn), _LARGEST)
    columns = max(1, min(8, _SHEET_WIDTH // size))
    sheet = draw_contact_sheet([np.asarray(one) for one in drawn], columns=columns, size=size)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        Image.fromarray(sheet).save(temporary, format="PNG")
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
