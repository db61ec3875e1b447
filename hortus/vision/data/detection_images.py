"""All images of a detection data set, opened, with whatever is wrong with them."""

import collections
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from hortus.vision.configs import detection as configs
from hortus.vision.data import progress
from hortus.vision.data.raw_images import pixel_digest
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.attempts import reason_of
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.dataloaders.detection.detection_set import DetectionSet, missing_files
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.sources.base import Shard, Source

_BROKEN = (tf.errors.OpError, ValueError, TypeError, OSError)
_READ_AHEAD = 64
_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclasses.dataclass(frozen=True)
class Look:
    """What an image is when it is opened."""

    size: tuple[int, ...] = ()
    """Height and width."""
    digest: bytes = b""
    """The same for the same pixels, whatever the file."""
    problem: str = ""
    """Why it cannot be used; empty when it can."""
    is_missing: bool = False


@dataclasses.dataclass(frozen=True)
class LookedAt:
    """A data set, and a look at each of its images."""

    data: DetectionSet
    looks: tuple[Look, ...]
    has_class_numbers: bool
    """Whether its categories are numbers of classes, as in records, or ids of their own."""


def look_at(params: configs.DataConfig, task_config: configs.DetectionTask) -> dict[str, LookedAt]:
    """Opens all images of a data config, in several threads; by name, where data is mixed.

    Raises:
        DataError: the files are not there, or are not what the config says.
    """
    if params.file_type in detection_input.READERS and not params.tfds_name:
        return {
            name: _look_at_files(data)
            for name, data in detection_input.read_sets(
                params, task_config.model.learns_masks
            ).items()
        }
    params = dataclasses.replace(params, skip_bad_records=False)
    # Any class is welcome here, so that those the model lacks can be counted.
    model = dataclasses.replace(task_config.model, num_classes=0)
    reader = detection_input.build_reader(params, model)
    return {
        name: _look_at_records(reader, source, name or _origin(params))
        for name, source in reader.sources.items()
    }


def _origin(params: configs.DataConfig) -> str:
    return str(params.tfds_name or params.input_path)


def _look_at_files(data: DetectionSet) -> LookedAt:
    missing = set(missing_files(data.paths))

    def look(number: int) -> Look:
        if number in missing:
            return Look(problem="it is not there", is_missing=True)
        try:
            return _look(tf.io.read_file(data.paths[number]))
        except _BROKEN as error:
            return Look(problem=reason_of(error))

    looks = _in_threads(look, range(len(data)))
    return LookedAt(data, tuple(progress.track(looks, f"reading {data.origin}", len(data))), False)


def _look(encoded: tf.Tensor) -> Look:
    pixels = preprocess.decode_image(encoded).numpy()
    return Look(tuple(pixels.shape[:2]), pixel_digest(pixels))


def _look_at_records(reader: InputReader, source: Source, origin: str) -> LookedAt:
    def load(reference: Any) -> tuple[str, dict[str, Any], Look]:
        as_numpy = tf.nest.map_structure(lambda value: value.numpy(), reference)
        where, example = source.where(as_numpy), {}
        try:
            loaded = source.load(reference)
            example = tf.nest.map_structure(lambda value: value.numpy(), loaded)
            return where, example, _look(loaded["image"])
        except _BROKEN as error:
            reason = reason_of(error)
            return where, example, Look(problem=reason + source.hint(as_numpy, reason))

    rows = []
    try:
        records = _in_threads(load, source.one_pass(Shard(), None))
        total = source.info.num_examples
        for where, example, look in progress.track(records, f"reading {origin}", total):
            # The encoded image is not needed any more.
            rows.append((where, {**example, "image": b""}, look))
    except tf.errors.OpError as error:
        raise DataError(reader.explain(error) or reason_of(error)) from None
    names = reader.info.class_names
    return LookedAt(_as_set(rows, names, origin), tuple(look for _, _, look in rows), True)


def _as_set(
    rows: Sequence[tuple[str, dict[str, Any], Look]], names: Sequence[str], origin: str
) -> DetectionSet:
    def column(key: str, shape: Sequence[int] = ()) -> np.ndarray:
        parts = [example[key] for _, example, _ in rows if key in example]
        return np.concatenate([np.zeros((0, *shape)), *parts])

    told = [(int(example.get("height", 0)), int(example.get("width", 0))) for _, example, _ in rows]
    sizes = [
        size if all(size) else (look.size or (1, 1))
        for size, (_, _, look) in zip(told, rows, strict=True)
    ]
    counts = [len(example.get("groundtruth_classes", ())) for _, example, _ in rows]
    splits = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    size_array = np.array(sizes, np.int32).reshape(-1, 2)
    limits = np.tile(size_array[np.repeat(np.arange(len(rows)), counts)], 2)
    classes = column("groundtruth_classes").astype(np.int64)
    ids = np.unique(classes)
    has_masks = any("groundtruth_masks" in example for _, example, _ in rows)
    masks = column("groundtruth_masks").astype(object) if has_masks else None
    return DetectionSet(
        origin=origin,
        paths=tuple(where for where, _, _ in rows),
        image_ids=np.array([int(example.get("source_id", -1)) for _, example, _ in rows], np.int64),
        sizes=size_array,
        splits=splits,
        boxes=column("groundtruth_boxes", [4]) * limits,
        categories=np.searchsorted(ids, classes),
        areas=column("groundtruth_area").astype(np.float32),
        is_crowd=column("groundtruth_is_crowd").astype(bool),
        is_difficult=column("groundtruth_is_difficult").astype(bool),
        category_ids=tuple(int(one) for one in ids),
        category_names=tuple(
            names[one - 1] if 0 < one <= len(names) else str(one) for one in ids.tolist()
        ),
        masks=masks,
    )


def _in_threads(function: Callable[[_In], _Out], items: Iterable[_In]) -> Iterator[_Out]:
    """Maps in order, and not far ahead of whoever asks."""
    waiting: collections.deque[futures.Future[_Out]] = collections.deque()
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > _READ_AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
