"""COCO's annotation files: images with boxes, categories and masks in one JSON file."""

import json
import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image, UnidentifiedImageError

from hortus.vision.dataloaders import paths
from hortus.vision.dataloaders.detection.detection_set import DetectionSet, concatenate
from hortus.vision.dataloaders.errors import DataError, near_paths
from hortus.vision.ops.segmentations import encode_segmentation


def read_coco(
    input_path: str | Sequence[str],
    image_dir: str = "",
    include_masks: bool = False,
    allow_outside: bool = False,
) -> DetectionSet:
    """The images and objects of COCO JSON files. No image is opened if the file tells its size.

    Args:
      input_path: the JSON file, or several with the same categories.
      image_dir: the folder that file names start from; empty looks for it around the file.
      include_masks: also read `segmentation`: polygons, or run-lengths of either kind.
      allow_outside: whether file names may lead out of the folder.
    """
    files = paths.match_files(input_path)
    return concatenate([_read(path, image_dir, include_masks, allow_outside) for path in files])


def _read(path: str, image_dir: str, include_masks: bool, allow_outside: bool) -> DetectionSet:
    content = _load(path)
    images, annotations = content["images"], content["annotations"]
    if not images:
        raise DataError(f"{path}: there are no images in it")
    category_ids, category_names = _categories(path, content["categories"])
    names = _column(path, "images", images, "file_name")
    paths.check_inside(names, path, allow_outside)
    folder = image_dir or _find_images(path, names)
    image_paths = tuple(os.path.join(folder, name) for name in names)

    ids = _column(path, "images", images, "id")
    image_of = {one: number for number, one in enumerate(ids)}
    if len(image_of) < len(ids):
        raise DataError(f"{path}: two images have the same id; ids must be unique")
    owners = [
        image_of.get(one, -1) for one in _column(path, "annotations", annotations, "image_id")
    ]
    owner = np.array(owners, np.int64)
    _say_if_lost(path, annotations, owner)
    # Annotations come in any order: they are sorted by image, and stay in order within one.
    order = np.argsort(owner, kind="stable")
    order = order[np.searchsorted(owner[order], 0) :]
    annotations = [annotations[place] for place in order]
    counts = np.bincount(owner[order], minlength=len(images))

    place_of = {one: place for place, one in enumerate(category_ids)}
    given = _column(path, "annotations", annotations, "category_id")
    boxes = _boxes(path, annotations)
    extents = boxes[:, 2] * boxes[:, 3]
    areas = [each.get("area") for each in annotations]
    sizes = _sizes(images, image_paths)
    masks: np.ndarray | None = None
    problems: tuple[str, ...] = ()
    if include_masks:
        masks, problems = _masks(path, annotations, sizes[owner[order]])
    return DetectionSet(
        origin=path,
        paths=image_paths,
        image_ids=_image_ids(ids),
        sizes=sizes,
        splits=np.concatenate([[0], np.cumsum(counts)]),
        boxes=np.stack(
            [boxes[:, 1], boxes[:, 0], boxes[:, 1] + boxes[:, 3], boxes[:, 0] + boxes[:, 2]], axis=1
        ),
        categories=np.array([place_of.get(one, -1) for one in given], np.int64),
        areas=np.array(
            [extent if area is None else area for area, extent in zip(areas, extents, strict=True)],
            np.float32,
        ),
        is_crowd=np.array([bool(each.get("iscrowd", 0)) for each in annotations], bool),
        is_difficult=np.array(
            [bool(each.get("ignore", 0) or each.get("difficult", 0)) for each in annotations], bool
        ),
        category_ids=category_ids,
        category_names=category_names,
        object_ids=tuple(each.get("id") for each in annotations),
        masks=masks,
        mask_problems=problems,
    )


def read_polygons(input_path: str | Sequence[str]) -> Iterator[tuple[str, list[list[float]]]]:
    """The polygons of all annotations that have some, and where each annotation is.

    Args:
      input_path: the JSON file, or several.
    """
    for path in paths.match_files(input_path):
        content = _load(path)
        names = {each.get("id"): each.get("file_name") for each in content["images"]}
        for each in content["annotations"]:
            segmentation = each.get("segmentation")
            if isinstance(segmentation, list) and segmentation:
                nested = isinstance(segmentation[0], list)
                where = f"{names.get(each.get('image_id'))}: annotation {each.get('id')}"
                yield f"{path}: {where}", segmentation if nested else [segmentation]


def _masks(
    path: str, annotations: list[dict], sizes: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes of the masks, empty where there is none, and what is wrong with segmentations."""
    codes = np.full(len(annotations), b"", object)
    problems = []
    for row, (annotation, (height, width)) in enumerate(
        zip(annotations, sizes.tolist(), strict=True)
    ):
        try:
            codes[row] = encode_segmentation(annotation.get("segmentation"), height, width)
        except ValueError as error:
            problems.append(f"{path}: annotation {annotation.get('id')}: {error}")
    return codes, tuple(problems)


def _load(path: str) -> dict[str, Any]:
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            content = json.loads(file.read())
    except ValueError as error:
        raise DataError(f"{path}: not a JSON file: {error}") from None
    except tf.errors.OpError as error:
        raise DataError(f"{path}: cannot be read: {error.message}") from None
    wanted = ("images", "annotations", "categories")
    if not isinstance(content, dict) or any(
        not isinstance(content.get(key), list) for key in wanted
    ):
        found = ", ".join(content) if isinstance(content, dict) else f"a {type(content).__name__}"
        raise DataError(
            f"{path}: not a COCO annotation file: expected the lists {', '.join(wanted)}, found "
            f"{found or 'nothing'}"
        )
    return content


def _column(path: str, what: str, entries: list[dict], key: str) -> list[Any]:
    try:
        return [entry[key] for entry in entries]
    except (KeyError, TypeError):
        broken = next(each for each in entries if not isinstance(each, dict) or key not in each)
        raise DataError(f"{path}: {what} need {key!r}, and this has none: {broken}") from None


def _categories(path: str, categories: list[dict]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Ids and names in the order of the ids."""
    if not categories:
        raise DataError(f"{path}: there are no categories in it")
    ids = _column(path, "categories", categories, "id")
    if not all(isinstance(one, int) for one in ids) or len(set(ids)) < len(ids):
        raise DataError(f"{path}: ids of categories must be different integers, got {ids[:10]}")
    by_id = {each["id"]: str(each.get("name", each["id"])) for each in categories}
    names = list(by_id.values())
    by_id = {
        one: f"{name} ({one})" if names.count(name) > 1 else name for one, name in by_id.items()
    }
    return tuple(sorted(by_id)), tuple(by_id[one] for one in sorted(by_id))


def _boxes(path: str, annotations: list[dict]) -> np.ndarray:
    """x, y, width, height of each; float64 [m, 4]."""
    boxes = _column(path, "annotations", annotations, "bbox")
    try:
        return np.array(boxes, np.float64).reshape(len(boxes), 4)
    except (ValueError, TypeError):
        for each in annotations:
            box = each["bbox"]
            if not isinstance(box, list) or len(box) != 4 or not all(map(_is_number, box)):
                raise DataError(
                    f"{path}: annotation {each.get('id')}: bbox must be [x, y, width, height] in "
                    f"pixels, got {box}"
                ) from None
        raise


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _image_ids(ids: list[Any]) -> np.ndarray:
    """The ids, or numbers from 1 where they are no integers."""
    if all(isinstance(one, int) for one in ids):
        return np.array(ids, np.int64)
    return np.arange(1, len(ids) + 1)


def _sizes(images: list[dict], image_paths: Sequence[str]) -> np.ndarray:
    sizes = []
    for image, path in zip(images, image_paths, strict=True):
        size = (image.get("height"), image.get("width"))
        sizes.append(size if all(size) else size_of_file(path))
    return np.array(sizes, np.int32)


def size_of_file(path: str) -> tuple[int, int]:
    """Height and width of an image, from the begin of its file."""
    try:
        with tf.io.gfile.GFile(path, "rb") as file, Image.open(file) as image:
            return image.height, image.width
    except (OSError, UnidentifiedImageError, tf.errors.OpError) as error:
        raise DataError(f"{path}: cannot be read as an image: {error}") from None


def _find_images(path: str, names: Sequence[str]) -> str:
    """The folder among the usual ones that has the first images."""
    here = os.path.dirname(path)
    above = os.path.dirname(here)
    stem = os.path.splitext(os.path.basename(path))[0].removeprefix("instances_")
    candidates = [
        os.path.join(here, "images"),
        here,
        os.path.join(here, stem),
        os.path.join(here, "images", stem),
        os.path.join(above, stem),
        os.path.join(above, "images"),
        os.path.join(above, "images", stem),
    ]
    for name in names[:5]:
        for folder in candidates:
            if tf.io.gfile.exists(os.path.join(folder, name)):
                return folder
    raise DataError(
        f"{path}: its images, such as {names[0]}, are in none of {', '.join(candidates)}"
        f"{near_paths(os.path.join(candidates[0], names[0]))}. Set image_dir to their folder"
    )


def _say_if_lost(path: str, annotations: list[dict], owner: np.ndarray) -> None:
    lost = np.flatnonzero(owner < 0)
    if len(lost):
        logging.getLogger(__name__).warning(
            "%s: %d annotations belong to no image, such as one of image_id %s; they are left out",
            path,
            len(lost),
            annotations[lost[0]]["image_id"],
        )
