"""Predictor: from image files to predictions, by a model or by an export of it."""

import collections
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any, Optional, Union

import numpy as np

from hortus.vision.serving.images import (
    MAX_PIXELS,
    FoundImage,
    PathLike,
    Picture,
    UnreadableImageError,
    find_images,
    read_image,
)
from hortus.vision.serving.run import BEST, load_run, settle_engine
from hortus.vision.serving.services.service import Prediction, Service, service_of

BATCH_SIZE = 8
_READERS = 4
_READ_AHEAD = 2
"""Batches that are read before their turn."""

ImageLike = Union[PathLike, np.ndarray, FoundImage]
Compute = Callable[[Sequence["Ready"]], list[Mapping[str, np.ndarray]]]
"""From images to the outputs for each of them, without batch axis."""


@dataclasses.dataclass(frozen=True)
class Ready:
    """An image on its way to the model."""

    source: Any
    """What the caller named: a `FoundImage`, or pixels."""
    picture: Picture
    inputs: Mapping[str, np.ndarray]
    """What `Service.prepare` made of it; empty where an export does so itself."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of an image: a prediction, or a problem."""

    source: Any
    """What the caller named: a `FoundImage`, or pixels."""
    picture: Optional[Picture] = None
    prediction: Optional[Prediction] = None
    problem: str = ""
    """Why it could not be read; empty where it could."""


class Predictor:
    """Says of images what a model has learnt to say.

        predictor = Predictor.from_run("/runs/shapes")
        for prediction in predictor.predict(["a.jpg", "folder/", "*.png"]):
            print(prediction)

    Args:
        service: of the task.
        compute: runs the model.
        origin: where the model comes from, for messages.
        needs_inputs: whether `compute` wants images prepared.
    """

    def __init__(
        self, service: Service, compute: Compute, origin: str = "", needs_inputs: bool = True
    ):
        self.service, self.origin = service, origin
        self._compute, self._needs_inputs = compute, needs_inputs

    @classmethod
    def from_run(
        cls,
        model_dir: PathLike,
        checkpoint: str = BEST,
        *,
        experiment: Optional[str] = None,
    ) -> "Predictor":
        """For the model of a run's folder; see `load_run` for the arguments."""
        from hortus.vision.serving.compiled import Compiled

        run = load_run(model_dir, checkpoint, experiment=experiment)
        service = service_of(run.task, run.class_names)
        return cls(service, Compiled(service, run.model), f"{run.checkpoint} (step {run.step})")

    @classmethod
    def load(
        cls, path: PathLike, checkpoint: str = BEST, *, experiment: Optional[str] = None
    ) -> "Predictor":
        """For the folder of a run, or for an export; the other arguments are for a run."""
        from hortus.vision.serving.description import is_export

        if is_export(os.fspath(path)):
            return cls.from_export(path)
        return cls.from_run(path, checkpoint, experiment=experiment)

    @classmethod
    def from_export(cls, path: PathLike) -> "Predictor":
        """For a file or folder that `hortus export` has written, with its description."""
        from hortus.vision.serving.description import read_description
        from hortus.vision.serving.exported import ExportedCompute

        description = read_description(os.fspath(path))
        settle_engine()
        compute = ExportedCompute(description.form.open_runtime(os.fspath(path)))
        origin = f"{path} ({description.format}, step {description.step})"
        return cls(description.service(), compute, origin, needs_inputs=False)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in the order of their numbers; empty where they are not known."""
        return self.service.class_names

    def predict(
        self,
        images: Union[ImageLike, Iterable[ImageLike]],
        batch_size: int = BATCH_SIZE,
        *,
        upright: bool = True,
    ) -> list[Prediction]:
        """Predictions for images, in their order.

        Args:
            images: files, folders and patterns, or pixels as uint8 [height, width, 3].
            batch_size: images that the model sees at once.
            upright: whether photos are turned as their EXIF data says.

        Raises:
            DataError: a file is not there, or is no image that can be read.
        """
        predictions = []
        for result in self.stream(_sources(images), batch_size, upright=upright):
            if result.prediction is None:
                raise UnreadableImageError(f"{result.source.path}: {result.problem}")
            predictions.append(result.prediction)
        return predictions

    def stream(
        self,
        images: Iterable[Union[FoundImage, np.ndarray]],
        batch_size: int = BATCH_SIZE,
        *,
        upright: bool = True,
        max_pixels: int = MAX_PIXELS,
    ) -> Iterator[Result]:
        """Yields a result for each image, in order; images that cannot be read have a problem.

        Args:
            images: from `find_images`, or pixels.
            batch_size: see `predict`.
            upright: see `predict`.
            max_pixels: see `read_image`.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, expected at least 1")

        def read(source: Any) -> Union[Ready, Result]:
            try:
                picture = _picture(source, upright, max_pixels)
            except UnreadableImageError as error:
                return Result(source, problem=str(error))
            inputs = self.service.prepare(picture) if self._needs_inputs else {}
            return Ready(source, picture, inputs)

        batch: list[Union[Ready, Result]] = []
        with futures.ThreadPoolExecutor(_READERS) as pool:
            try:
                for item in _ahead(pool, read, images, batch_size * _READ_AHEAD):
                    batch.append(item)
                    if sum(isinstance(each, Ready) for each in batch) == batch_size:
                        yield from self._finish(batch, batch_size)
                        batch = []
                yield from self._finish(batch, batch_size)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _finish(self, batch: Sequence[Union[Ready, Result]], batch_size: int) -> Iterator[Result]:
        ready = [item for item in batch if isinstance(item, Ready)]
        outputs = iter(self._compute(ready) if ready else ())
        for item in batch:
            if isinstance(item, Result):
                yield item
                continue
            prediction = self.service.interpret(next(outputs), item.picture.size)
            yield Result(item.source, item.picture, prediction)


def _sources(images: Any) -> list[Any]:
    if isinstance(images, (str, os.PathLike, np.ndarray, FoundImage)):
        images = [images]
    found: list[Any] = []
    for image in images:
        is_path = isinstance(image, (str, os.PathLike))
        found += find_images(image) if is_path else [image]
    return found


def _picture(source: Any, upright: bool, max_pixels: int) -> Picture:
    if isinstance(source, FoundImage):
        return read_image(source.path, upright, max_pixels)
    pixels = np.asarray(source)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise ValueError(
            f"pixels are uint8 [height, width, 3], got {pixels.dtype} {list(pixels.shape)}"
        )
    return Picture(pixels)


def _ahead(
    pool: futures.Executor, function: Callable[[Any], Any], items: Iterable[Any], count: int
) -> Iterator[Any]:
    """`map(function, items)` by several threads, no more than `count` items ahead."""
    waiting: collections.deque[futures.Future[Any]] = collections.deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) > count:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
