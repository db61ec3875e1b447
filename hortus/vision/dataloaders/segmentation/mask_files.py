"""Ordinary image files with a mask each: two folders, or COCO's panoptic format."""

import dataclasses
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hortus.vision.dataloaders import paths
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError, near_paths
from hortus.vision.dataloaders.image_files import IMAGE_ENDINGS
from hortus.vision.dataloaders.sources.table import Table

CLASSES_FILE = "classes.json"
SEGMENT_IDS, SEGMENT_CLASSES = "segments/ids", "segments/classes"
"""Keys of what the numbers in a panoptic mask mean."""
_UP = 2
"""How many folders above the masks the file of the classes may be."""


@dataclasses.dataclass(frozen=True)
class MaskedImages:
    """Paths of images and of their masks."""

    images: tuple[str, ...]
    masks: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    """In the order of their numbers; empty where no file tells them."""
    ignore_label: int | None = None
    """Number of pixels that do not count, where the file of the classes tells it."""
    segments: tuple[dict[int, int], ...] = ()
    """For panoptic masks: each one's class numbers by the numbers of its segments."""

    def __len__(self) -> int:
        return len(self.images)

    @property
    def info(self) -> DatasetInfo:
        return DatasetInfo(self.class_names, len(self))

    def as_source(self, image_key: str, mask_key: str) -> Table:
        """Examples of the encoded image, the encoded mask, and the segments where there are any."""
        columns: dict[str, Any] = {
            image_key: tf.constant(self.images),
            mask_key: tf.constant(self.masks),
        }
        if self.segments:
            ids = [list(each) for each in self.segments]
            classes = [list(each.values()) for each in self.segments]
            columns[SEGMENT_IDS] = tf.ragged.constant(ids, tf.int32, ragged_rank=1)
            columns[SEGMENT_CLASSES] = tf.ragged.constant(classes, tf.int32, ragged_rank=1)
        places = [
            f"{image} with {mask}" for image, mask in zip(self.images, self.masks, strict=True)
        ]
        return Table(columns, files=[image_key, mask_key], info=self.info, places=places)


def read_mask_folders(
    input_path: str | Sequence[str], mask_path: str | Sequence[str] | None = None
) -> MaskedImages:
    """Images below folders, and the masks of the same names below others.

    The mask of `images/train/a/7.jpg` is `masks/train/a/7.png`. The names of the classes are read
    from a file `classes.json` in the folder of the masks or up to two above: a list of names, or a
    dict with the list under `classes` and, where pixels do not count, their number under
    `ignore_index`.

    Args:
      input_path: folder of the images, or several.
      mask_path: folder of the masks, or as many; None for the folder `masks` beside `images`.
    """
    image_folders, mask_folders = _folder_pairs(input_path, mask_path)
    images: list[str] = []
    masks: list[str] = []
    without: list[tuple[str, str]] = []
    for image_folder, mask_folder in zip(image_folders, mask_folders, strict=True):
        for image in _files_below(image_folder, IMAGE_ENDINGS):
            stem = os.path.splitext(os.path.relpath(image, image_folder))[0]
            mask = os.path.join(mask_folder, f"{stem}.png")
            if os.path.isfile(mask):
                images.append(image)
                masks.append(mask)
            else:
                without.append((image, mask))
    if without:
        total = len(images) + len(without)
        image, mask = without[0]
        raise DataError(
            f"{len(without)} of {total} images have no mask: {image} should have {mask}. Masks are "
            "PNG files with the names of the images; set mask_path if their folder is another"
        )
    if not images:
        raise DataError(
            f"{', '.join(image_folders)}: there are no images ({', '.join(IMAGE_ENDINGS)})"
        )
    names, ignore_label = _read_classes(mask_folders)
    return MaskedImages(tuple(images), tuple(masks), names, ignore_label)


def unused_masks(
    input_path: str | Sequence[str], mask_path: str | Sequence[str] | None = None
) -> list[str]:
    """Masks in the folders of `read_mask_folders` that belong to no image."""
    found: set[str] = set()
    for folder in _folder_pairs(input_path, mask_path)[1]:
        found.update(_files_below(folder, (".png",)))
    return sorted(found - set(read_mask_folders(input_path, mask_path).masks))


def _folder_pairs(
    input_path: str | Sequence[str], mask_path: str | Sequence[str] | None
) -> tuple[list[str], list[str]]:
    images = paths.match_paths(input_path)
    masks = (
        [_beside(folder) for folder in images] if not mask_path else paths.match_paths(mask_path)
    )
    if len(images) != len(masks):
        raise DataError(
            f"input_path names {len(images)} folders and mask_path {len(masks)}: expected as many"
        )
    for folder in (*images, *masks):
        if not os.path.isdir(folder):
            what = (
                "is a file, where a folder is expected"
                if os.path.exists(folder)
                else "is not there"
            )
            raise DataError(f"{folder} {what}{near_paths(folder)}")
    return images, masks


def _beside(folder: str) -> str:
    """The folder of the masks: the last `images` of the path is `masks` there."""
    parts = list(pathlib.PurePath(folder).parts)
    places = [place for place, part in enumerate(parts) if part.lower() == "images"]
    if not places:
        raise DataError(
            f"where are the masks of {folder}? Set mask_path to their folder, or name the folders "
            "`images` and `masks`, side by side"
        )
    parts[places[-1]] = "masks"
    return str(pathlib.PurePath(*parts))


def _files_below(folder: str, endings: tuple[str, ...]) -> list[str]:
    found = []
    for parent, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [
            os.path.join(parent, name)
            for name in sorted(files)
            if name.lower().endswith(endings) and not name.startswith(".")
        ]
    return found


def _read_classes(mask_folders: Sequence[str]) -> tuple[tuple[str, ...], int | None]:
    """Names of the classes and the number that is ignored, as far as files tell them."""
    found = {}
    for folder in mask_folders:
        above = pathlib.Path(os.path.abspath(folder))
        for place in (above, *list(above.parents)[:_UP]):
            if (place / CLASSES_FILE).is_file():
                found[str(place / CLASSES_FILE)] = _classes_of(place / CLASSES_FILE)
                break
    if len(set(found.values())) > 1:
        raise DataError(f"{' and '.join(found)} tell different classes")
    return next(iter(found.values()), ((), None))


def _classes_of(path: pathlib.Path) -> tuple[tuple[str, ...], int | None]:
    content = _load_json(str(path))
    names = content.get("classes") if isinstance(content, dict) else content
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(
            f'{path}: expected a list of class names, or {{"classes": [...], "ignore_index": 255}}'
        )
    ignored = content.get("ignore_index") if isinstance(content, dict) else None
    return tuple(names), ignored


def read_coco_panoptic(
    input_path: str | Sequence[str],
    mask_path: str | Sequence[str] | None,
    annotation_file: str | None,
    allow_outside: bool = False,
) -> MaskedImages:
    """Images, their masks and what the masks' numbers mean, of COCO's panoptic format.

    Classes are numbered from 0 in the order of the categories' ids. Pixels of no segment do not
    count.

    Args:
      input_path: folder of the images.
      mask_path: folder of the masks; None for the folder `masks` beside `images`.
      annotation_file: the JSON file.
      allow_outside: whether file names may lead out of the folders.
    """
    if not annotation_file:
        raise DataError("annotation_file is not set: where is COCO's panoptic JSON file?")
    image_folders, mask_folders = _folder_pairs(input_path, mask_path)
    content = _load_json(annotation_file)
    missing = [key for key in ("images", "annotations", "categories") if key not in content]
    if missing:
        raise DataError(f"{annotation_file}: no {', '.join(missing)} in it, as COCO's files have")
    categories = sorted(content["categories"], key=lambda category: category["id"])
    numbers = {category["id"]: number for number, category in enumerate(categories)}
    names = {image["id"]: image["file_name"] for image in content["images"]}
    images, masks, segments = [], [], []
    for annotation in content["annotations"]:
        image = names.get(annotation["image_id"])
        if image is None or "segments_info" not in annotation:
            what = "an image that is not listed" if image is None else "no segments_info"
            raise DataError(f"{annotation_file}: image_id {annotation['image_id']} has {what}")
        paths.check_inside([image, annotation["file_name"]], annotation_file, allow_outside)
        images.append(_in_one_of(image_folders, image))
        masks.append(_in_one_of(mask_folders, annotation["file_name"]))
        try:
            segments.append(
                {part["id"]: numbers[part["category_id"]] for part in annotation["segments_info"]}
            )
        except KeyError as error:
            raise DataError(
                f"{annotation_file}: {annotation['file_name']}: no category {error}"
            ) from None
    if not images:
        raise DataError(f"{annotation_file}: no annotations in it")
    return MaskedImages(
        tuple(images),
        tuple(masks),
        tuple(category.get("name", str(category["id"])) for category in categories),
        segments=tuple(segments),
    )


def _in_one_of(folders: Sequence[str], name: str) -> str:
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise DataError(f"{name} is in none of {', '.join(folders)}")


def _load_json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}{near_paths(path)}") from None
    except ValueError as error:
        raise DataError(f"{path}: not a JSON file: {error}") from None
