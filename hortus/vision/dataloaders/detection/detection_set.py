"""Images with boxes, as the files of a data set tell them, before any image is read."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.detection.classes import Classes
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources.table import Table

_INSIDE = 1.0
"""Pixels that a box may reach beyond its image: annotation tools round."""


@dataclasses.dataclass(frozen=True)
class DetectionSet:
    """n images and their m objects, in columns; nothing is mended or left out yet."""

    origin: str
    """What it was read from, for messages."""
    paths: tuple[str, ...]
    """Of the images."""
    image_ids: np.ndarray
    """int64 [n]."""
    sizes: np.ndarray
    """Height and width in pixels that the files tell, int32 [n, 2]."""
    splits: np.ndarray
    """The objects of image i are those from splits[i] to splits[i + 1]; int64 [n + 1]."""
    boxes: np.ndarray
    """ymin, xmin, ymax, xmax in pixels, float64 [m, 4]."""
    categories: np.ndarray
    """Place of each object's category in `category_ids`, int64 [m]; -1 for one that is unknown."""
    areas: np.ndarray
    """Pixels that the objects cover, float32 [m]."""
    is_crowd: np.ndarray
    """bool [m]."""
    is_difficult: np.ndarray
    """bool [m]."""
    category_ids: tuple[int, ...]
    category_names: tuple[str, ...]
    object_ids: tuple[Any, ...] | None = None
    """What the files call each object, [m]; None where they have no names for them."""
    masks: np.ndarray | None = None
    """Compressed run-lengths of each object's mask, see `mask_codes`, bytes as object [m]; empty
    for an object without one. None where masks were not read."""
    mask_problems: tuple[str, ...] = ()
    """What is wrong with masks that could not be read, each with its place."""

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def counts(self) -> np.ndarray:
        """Number of objects of each image, int64 [n]."""
        return np.diff(self.splits)

    @property
    def images_of_objects(self) -> np.ndarray:
        """Number of the image that each object is in, int64 [m]."""
        return np.repeat(np.arange(len(self)), self.counts)

    @property
    def mask_bytes(self) -> np.ndarray:
        """Bytes of the masks of each image, int64 [n]; 0 where masks were not read."""
        if self.masks is None:
            return np.zeros(len(self), np.int64)
        sizes = np.concatenate([[0], np.cumsum([len(code) for code in self.masks])])
        return np.diff(sizes[self.splits])

    def is_empty(self) -> np.ndarray:
        """Which boxes have no height or no width, or are no numbers; bool [m]."""
        has_extent = np.all(self.boxes[:, 2:] > self.boxes[:, :2], axis=1)
        return ~(has_extent & np.all(np.isfinite(self.boxes), axis=1))

    def is_outside(self, tolerance: float = _INSIDE) -> np.ndarray:
        """Which boxes reach beyond their image by more than `tolerance` pixels; bool [m]."""
        limits = np.tile(self.sizes[self.images_of_objects], 2) + tolerance
        return np.any((self.boxes < -tolerance) | (self.boxes > limits), axis=1)

    def select(self, images: Sequence[int] | np.ndarray) -> "DetectionSet":
        """The images of these numbers, with their objects."""
        images = np.asarray(images, np.int64)
        counts = self.counts[images]
        splits = np.concatenate([[0], np.cumsum(counts)])
        objects = np.arange(splits[-1]) + np.repeat(self.splits[images] - splits[:-1], counts)
        return dataclasses.replace(
            self,
            paths=tuple(self.paths[image] for image in images),
            image_ids=self.image_ids[images],
            sizes=self.sizes[images],
            splits=splits,
            boxes=self.boxes[objects],
            categories=self.categories[objects],
            areas=self.areas[objects],
            is_crowd=self.is_crowd[objects],
            is_difficult=self.is_difficult[objects],
            object_ids=None
            if self.object_ids is None
            else tuple(self.object_ids[place] for place in objects),
            masks=None if self.masks is None else self.masks[objects],
        )

    def info(self, classes: Classes) -> DatasetInfo:
        """Names of the classes and number of objects in each."""
        numbers = classes.numbers_of(self.category_ids)[self.categories]
        per_class = np.bincount(numbers, minlength=len(classes.names) + 1)[1:]
        return DatasetInfo(classes.names, len(self), tuple(int(count) for count in per_class))

    def as_source(self, classes: Classes) -> Table:
        """Examples with the keys of `decoder`, boxes as shares of the image size."""
        if not self.paths:
            raise DataError(f"{self.origin}: there are no images")
        if np.any(self.categories < 0):
            raise DataError(f"{self.origin}: objects of unknown categories cannot be numbered")
        limits = np.tile(self.sizes[self.images_of_objects], 2)

        def ragged(values: np.ndarray) -> tf.RaggedTensor:
            return tf.RaggedTensor.from_row_splits(values, self.splits, validate=False)

        columns = {
            "image": tf.constant(self.paths),
            "source_id": tf.constant(self.image_ids),
            "height": tf.constant(self.sizes[:, 0]),
            "width": tf.constant(self.sizes[:, 1]),
            "groundtruth_boxes": ragged((self.boxes / np.maximum(limits, 1)).astype(np.float32)),
            "groundtruth_classes": ragged(classes.numbers_of(self.category_ids)[self.categories]),
            "groundtruth_area": ragged(self.areas),
            "groundtruth_is_crowd": ragged(self.is_crowd),
            "groundtruth_is_difficult": ragged(self.is_difficult),
        }
        if self.masks is not None:
            columns["groundtruth_masks"] = ragged(tf.constant(self.masks, tf.string))
        return Table(columns, files=["image"], info=self.info(classes))


def concatenate(sets: Sequence[DetectionSet]) -> DetectionSet:
    """Several sets with the same categories as one; images get new ids where two share one."""
    first = sets[0]
    if len(sets) == 1:
        return first
    for other in sets[1:]:
        if (other.category_ids, other.category_names) != (
            first.category_ids,
            first.category_names,
        ):
            raise DataError(
                f"{other.origin}: its categories ({', '.join(other.category_names[:10])}) are not "
                f"those of {first.origin} ({', '.join(first.category_names[:10])})"
            )
    ids = np.concatenate([each.image_ids for each in sets])
    if len(np.unique(ids)) < len(ids):
        ids = np.arange(1, len(ids) + 1)
    counts = np.concatenate([each.counts for each in sets])

    def joined(name: str) -> Any:
        return np.concatenate([getattr(each, name) for each in sets])

    has_ids = all(each.object_ids is not None for each in sets)
    has_masks = all(each.masks is not None for each in sets)

    return dataclasses.replace(
        first,
        origin=", ".join(each.origin for each in sets),
        paths=tuple(path for each in sets for path in each.paths),
        image_ids=ids,
        splits=np.concatenate([[0], np.cumsum(counts)]),
        object_ids=tuple(one for each in sets for one in each.object_ids or ())
        if has_ids
        else None,
        masks=joined("masks") if has_masks else None,
        mask_problems=tuple(text for each in sets for text in each.mask_problems),
        **{
            name: joined(name)
            for name in ("sizes", "boxes", "categories", "areas", "is_crowd", "is_difficult")
        },
    )


def missing_files(paths: Sequence[str]) -> list[int]:
    """Numbers of the local files that are not there; folders are listed once, not file by file."""
    listed: dict[str, frozenset[str]] = {}
    missing = []
    for number, path in enumerate(paths):
        if "://" in path:
            continue
        folder, name = os.path.split(path)
        if folder not in listed:
            try:
                listed[folder] = frozenset(os.listdir(folder or "."))
            except OSError:
                listed[folder] = frozenset()
        if name not in listed[folder]:
            missing.append(number)
    return missing
