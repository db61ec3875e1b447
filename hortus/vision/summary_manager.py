"""Summaries of vision tasks: pictures beside numbers."""

import os
from typing import Any, Optional

from hortus.core import summary_factory
from hortus.core.run_folder import RunFolder
from hortus.core.summary_manager import SummaryManager, SummaryWriter

_IMAGE = "image/"


class ImageScalarSummaryManager(SummaryManager):
    """Writes values whose name starts with `image/` as pictures, all others like its base class.

    Pictures are [n, height, width, channels], uint8 or floats from 0 to 1; see `SummaryManager` for
    the arguments.
    """

    def write_summary(self, writer: SummaryWriter, name: str, value: Any, step: int) -> None:
        if name.startswith(_IMAGE):
            writer.image(name, value, step)
        else:
            super().write_summary(writer, name, value, step)


@summary_factory.register_summary("pictures")
def _pictures(folder: Optional[str], params: Any) -> ImageScalarSummaryManager:
    """Numbers and pictures, for TensorBoard."""
    del params
    return ImageScalarSummaryManager(folder)


def maybe_build_eval_summary_manager(
    params: Any, model_dir: "str | os.PathLike[str]"
) -> Optional[ImageScalarSummaryManager]:
    """The summary manager for evaluations that draw, or None to leave it to the controller.

    Args:
        params: the experiment's config; `task.allow_image_summary` decides, unless
            `trainer.summary` names another manager.
        model_dir: the run's folder.
    """
    if not params.task.allow_image_summary or params.trainer.summary is not None:
        return None
    return ImageScalarSummaryManager(
        RunFolder(model_dir).validation_summaries(params.trainer.validation_summary_subdir)
    )
