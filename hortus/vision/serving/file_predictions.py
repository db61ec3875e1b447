"""Predictions for many image files, written to a folder as they come; an interruption loses few."""

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Optional

from hortus.core.run_folder import RunFolder
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.serving.description import is_export
from hortus.vision.serving.images import MAX_PIXELS, PathLike, find_images
from hortus.vision.serving.predictor import BATCH_SIZE, Predictor, Result
from hortus.vision.serving.results import ResultFolder
from hortus.vision.serving.run import BEST

_SAVE_SECONDS = 10.0
"""How often the files with all results are written anew."""


class Listener:
    """Learns how far the predictions are; subclass it to tell a user. Does nothing by itself."""

    def resuming(self, done: int, total: int, output: str) -> None:
        """Called when some of the images have results already."""

    def begin(self, origin: str) -> None:
        """Called with what predicts, before the first image."""

    def result(self, result: Result, done: int, total: int) -> None:
        """Called for each image, when its result has been added."""


@dataclasses.dataclass(frozen=True)
class Written:
    """What was written."""

    output: str
    """The folder."""
    predictions_path: str
    """The file with all predictions."""
    predicted: int
    """Images with a result, of this call."""
    skipped: tuple[str, ...]
    """Images that could not be read; images.json tells why."""


def default_output(model: PathLike) -> str:
    """Where predictions go unless somebody says: into the run's folder, or beside an export."""
    path = os.fspath(model).rstrip("/")
    return f"{path}_predictions" if is_export(path) else RunFolder(path).predictions


def predict_files(
    model: PathLike,
    images: Sequence[PathLike],
    output: Optional[str] = None,
    *,
    checkpoint: str = BEST,
    experiment: Optional[str] = None,
    batch_size: int = BATCH_SIZE,
    pictures: bool = True,
    upright: bool = True,
    max_pixels: int = MAX_PIXELS,
    resume: bool = False,
    listener: Optional[Listener] = None,
) -> Written:
    """Says what a model sees in images; see `results` for the files that it writes.

    Args:
        model: folder of a run, or an export.
        images: files, folders or patterns.
        output: folder to write; None for `default_output`.
        checkpoint: see `load_run`.
        experiment: see `load_run`.
        batch_size: images that the model sees at once.
        pictures: whether to draw predictions on the images.
        upright: whether photos are turned as their EXIF data says.
        max_pixels: larger images are skipped.
        resume: whether to keep the results that the folder has, and to predict the others only.
        listener: is told how far it is.

    Raises:
        DataError: no image is named, or one is not there.
    """
    if not images:
        raise DataError("which images? Name files, folders or patterns")
    listener = listener or Listener()
    found = find_images(images)
    output = output or default_output(model)
    results = ResultFolder(output, found, pictures, resume)
    todo = [image for image in found if image.path not in results.done]
    if len(todo) < len(found):
        listener.resuming(len(found) - len(todo), len(found), output)
    if not todo:
        return Written(output, results.predictions_path, 0, ())
    predictor = Predictor.load(model, checkpoint, experiment=experiment)
    listener.begin(predictor.origin)
    skipped: list[str] = []
    saved = time.monotonic()
    stream = predictor.stream(todo, batch_size, upright=upright, max_pixels=max_pixels)
    try:
        for done, result in enumerate(stream, start=1):
            results.add(result)
            if result.problem:
                skipped.append(result.source.path)
            listener.result(result, done, len(todo))
            if time.monotonic() - saved > _SAVE_SECONDS:
                results.save()
                saved = time.monotonic()
    finally:
        results.save()
    return Written(output, results.predictions_path, len(todo) - len(skipped), tuple(skipped))
