"""A folder of instance masks: one PNG per image, whose pixels are the numbers of its objects."""

import os
import pathlib
from collections.abc import Sequence
from concurrent import futures

import numpy as np
from PIL import Image

from hortus.vision.dataloaders import paths
from hortus.vision.dataloaders.detection.detection_set import DetectionSet, concatenate
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.segmentation.mask_files import read_mask_folders
from hortus.vision.ops.segmentations import encode_labels

PER_CLASS = 1000
"""With classes, an object's number is its class, from 1, times this, plus a number of its own."""
ONLY_CLASS = "object"
_FOLDERS = ("masks", "instances")
_VOID = 255
"""What palettes of Pascal VOC have at borders, which belong to no object."""


def read_instance_masks(
    input_path: str | Sequence[str],
    image_dir: str = "",
    include_masks: bool = True,
    allow_outside: bool = False,
) -> DetectionSet:
    """The images and objects of folders of instance masks.

    A mask has the name of its image, and the number of an object in each pixel: 0 is the
    background. It is grey, of 8 or 16 bits, or has a palette, where 255 is a border that belongs to
    no object; in a colour image the number is red + 256 * green + 65536 * blue. Boxes are those
    around the pixels. All masks are opened once, in threads.

    With a file `classes.json`, a list of names, in the folder of the masks or up to two above, the
    class of an object is its number // 1000, from 1 on. Without, all are of one class, `object`.

    Args:
      input_path: folder of the masks, or several.
      image_dir: folder of the images; empty for `images` where the path has `masks` or `instances`.
      include_masks: keep the masks, not only their boxes.
      allow_outside: has no effect, as there is no file that names others.
    """
    del allow_outside
    folders = paths.match_paths(input_path)
    return concatenate([_read(folder, image_dir, include_masks) for folder in folders])


def _read(folder: str, image_dir: str, include_masks: bool) -> DetectionSet:
    found = read_mask_folders(image_dir or _images_beside(folder), folder)
    names = found.class_names or (ONLY_CLASS,)
    has_classes = bool(found.class_names)
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(_objects, found.masks))
    counts = [len(each.numbers) for each in objects]
    numbers = np.concatenate([np.zeros(0, np.int64), *(each.numbers for each in objects)])
    categories = numbers // PER_CLASS - 1 if has_classes else np.zeros(len(numbers), np.int64)
    masks = np.empty(len(numbers), object)
    masks[:] = [code for each in objects for code in each.codes]
    return DetectionSet(
        origin=folder,
        paths=found.images,
        image_ids=np.arange(1, len(found) + 1),
        sizes=np.array([each.size for each in objects], np.int32).reshape(-1, 2),
        splits=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        boxes=np.concatenate([np.zeros((0, 4)), *(each.boxes for each in objects)]),
        categories=np.where((categories >= 0) & (categories < len(names)), categories, -1),
        areas=np.concatenate([np.zeros(0), *(each.areas for each in objects)]).astype(np.float32),
        is_crowd=np.zeros(len(numbers), bool),
        is_difficult=np.zeros(len(numbers), bool),
        category_ids=tuple(range(1, len(names) + 1)),
        category_names=names,
        object_ids=tuple(numbers.tolist()),
        masks=masks if include_masks else None,
    )


class _Objects:
    """The objects of a mask file."""

    def __init__(self, labels: np.ndarray):
        self.size = labels.shape
        numbers, places = np.unique(labels, return_inverse=True)
        places = places.reshape(labels.shape)
        is_object = numbers > 0
        self.numbers = numbers[is_object].astype(np.int64)
        self.areas = np.bincount(places.reshape(-1), minlength=len(numbers))[is_object]
        edges = np.zeros((len(numbers), 4))
        for axis, by_line in enumerate((places, places.T)):
            side = len(by_line)
            # Which object is in which row, or column; of several writes to a place the last counts.
            line, number = np.divmod(
                np.unique(np.arange(side)[:, None] * len(numbers) + by_line), len(numbers)
            )
            edges[number, axis + 2] = line + 1
            edges[number[::-1], axis] = line[::-1]
        self.boxes = edges[is_object]
        self.codes = encode_labels(labels, self.numbers.tolist())


def _objects(path: str) -> _Objects:
    return _Objects(read_object_numbers(path))


def read_object_numbers(path: str, size: Sequence[int] | None = None) -> np.ndarray:
    """The numbers in a mask file, int32 [height, width]; 0 is the background.

    Args:
      path: of a PNG file: grey, with a palette, or in colour.
      size: height and width that it must have; None for any.
    """
    try:
        with Image.open(path) as image:
            has_palette = image.mode == "P"
            pixels = np.asarray(image)
    except OSError as error:
        raise DataError(f"{path}: cannot be read as an image: {error}") from None
    if pixels.ndim == 3 and pixels.shape[2] >= 3:
        labels = pixels[..., :3].astype(np.int32) @ np.array([1, 256, 65536], np.int32)
    else:
        labels = (pixels if pixels.ndim == 2 else pixels[..., 0]).astype(np.int32)
    if has_palette:
        labels = np.where(labels == _VOID, 0, labels)
    if size is not None and tuple(size) != labels.shape:
        raise DataError(
            f"{path} has {labels.shape[1]} x {labels.shape[0]} pixels (width x height), its image "
            f"{size[1]} x {size[0]}"
        )
    return labels


def _images_beside(folder: str) -> str:
    parts = list(pathlib.PurePath(folder).parts)
    places = [place for place, part in enumerate(parts) if part.lower() in _FOLDERS]
    if not places:
        raise DataError(
            f"where are the images of {folder}? Set image_dir to their folder, or name the folders "
            "`images` and `masks`, side by side"
        )
    parts[places[-1]] = "images"
    return str(pathlib.PurePath(*parts))
