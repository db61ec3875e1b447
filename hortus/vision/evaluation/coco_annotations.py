"""The truth in an annotation file of COCO's kind."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from hortus.vision.evaluation import coco_masks
from hortus.vision.evaluation.coco_matching import Objects


@dataclasses.dataclass(frozen=True)
class Annotations:
    """Images and objects of an annotation file."""

    image_ids: np.ndarray
    """int64 [n], sorted; objects name images by their places here."""
    objects: Objects
    rles: tuple[dict[str, Any], ...]
    """Run-length encodings of the objects' masks; empty where they were not asked for."""
    category_ids: tuple[int, ...]
    category_names: tuple[str, ...]


def read_annotations(path: str, include_mask: bool = False) -> Annotations:
    """Reads an annotation file.

    Args:
        path: of the JSON file.
        include_mask: also read segmentations. The areas are those of the file in any case.
    """
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    image_ids = np.unique([each["id"] for each in content["images"]])
    sizes = {each["id"]: (each.get("height"), each.get("width")) for each in content["images"]}
    categories = sorted(content["categories"], key=lambda each: each["id"])
    category_ids = tuple(each["id"] for each in categories)
    annotations = [each for each in content["annotations"] if each["image_id"] in sizes]
    boxes = np.array([each["bbox"] for each in annotations], np.float64).reshape(-1, 4)
    is_crowd = np.array([bool(each.get("iscrowd", 0)) for each in annotations], bool)
    place_of = {one: place for place, one in enumerate(category_ids)}
    return Annotations(
        image_ids=image_ids.astype(np.int64),
        objects=Objects(
            images=np.searchsorted(image_ids, [each["image_id"] for each in annotations]),
            categories=np.array([place_of[each["category_id"]] for each in annotations], np.int64),
            boxes=boxes,
            areas=np.array(
                [
                    each.get("area", box[2] * box[3])
                    for each, box in zip(annotations, boxes, strict=True)
                ],
                np.float64,
            ),
            is_crowd=is_crowd,
            is_ignored=is_crowd,
        ),
        rles=tuple(
            coco_masks.from_segmentation(each["segmentation"], *sizes[each["image_id"]])
            for each in annotations
        )
        if include_mask
        else (),
        category_ids=category_ids,
        category_names=tuple(str(each.get("name", each["id"])) for each in categories),
    )


def category_of_class(annotations: Annotations, class_names: Sequence[str]) -> dict[int, int]:
    """Places of the categories by class number: by name where there are names, else by id."""
    if not class_names:
        return {one: place for place, one in enumerate(annotations.category_ids)}
    numbers = {name: number for number, name in enumerate(class_names, start=1)}
    found = {
        numbers[name]: place
        for place, name in enumerate(annotations.category_names)
        if name in numbers
    }
    if not found:
        raise ValueError(
            "no category of the annotation file is a class of the model: the file has "
            f"{', '.join(annotations.category_names[:10])}, the model "
            f"{', '.join(class_names[:10])}"
        )
    return found
