"""Instance masks for evaluation: pasted into their image, run-length encoded, compared."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from faster_coco_eval.core import mask as rle_api

from hortus.vision.evaluation.coco_matching import Detections, Objects, Overlap

_THRESHOLD = 0.5
"""Mask values above belong to the object."""


def encode(masks: np.ndarray) -> list[dict[str, Any]]:
    """Run-length encodings of binary masks [n, height, width]."""
    if not len(masks):
        return []
    return rle_api.encode(np.asfortranarray(np.moveaxis(masks, 0, -1).astype(np.uint8)))


def paste(mask: np.ndarray, box: np.ndarray, height: int, width: int) -> np.ndarray:
    """The mask of a box, [h, w] of 0..1, as the object's pixels, bool [height, width].

    The mask gets a margin of one cell of 0, the box grows with it and is brought to whole pixels,
    and the mask is resized to it.

    Args:
        mask: [h, w].
        box: ymin, xmin, ymax, xmax in pixels.
        height: of the image.
        width: of the image.
    """
    pasted = np.zeros((height, width), bool)
    if not np.all(np.isfinite(box)):
        return pasted
    top, rows, row_weights = _span(box[0], box[2], mask.shape[0], height)
    left, columns, column_weights = _span(box[1], box[3], mask.shape[1], width)
    values = row_weights @ np.pad(mask, 1).astype(np.float64) @ column_weights.T
    pasted[top : top + rows, left : left + columns] = values > _THRESHOLD
    return pasted


def _span(begin: float, end: float, cells: int, limit: int) -> tuple[int, int, np.ndarray]:
    """Where a mask lies along one side of the image, and how its cells make up the pixels.

    Args:
        begin: of the box.
        end: of the box.
        cells: of the mask along this side, without its margin.
        limit: pixels of the image along this side.

    Returns:
        First pixel, number of pixels, and weights [pixels, cells + 2] of linear interpolation.
    """
    middle, half = (begin + end) / 2, (end - begin) / 2 * (cells + 2) / cells
    first, last = int(middle - half), int(middle + half)
    size = max(last - first + 1, 1)
    shown = np.arange(max(first, 0), max(min(first + size, limit), max(first, 0)))
    place = (shown - first + 0.5) * (cells + 2) / size - 0.5
    below = np.floor(place).astype(int)
    weights = np.zeros((len(shown), cells + 2))
    for neighbour, share in ((below, below + 1 - place), (below + 1, place - below)):
        np.add.at(weights, (np.arange(len(shown)), np.clip(neighbour, 0, cells + 1)), share)
    return max(first, 0), len(shown), weights


def areas(rles: Sequence[dict[str, Any]]) -> np.ndarray:
    """Number of pixels of each, float64."""
    return np.asarray(rle_api.area(list(rles)), np.float64) if len(rles) else np.zeros(0)


def from_segmentation(segmentation: Any, height: int, width: int) -> dict[str, Any]:
    """The encoding of polygons, or of an encoding in any of COCO's ways."""
    if isinstance(segmentation, list):
        return rle_api.merge(rle_api.frPyObjects(segmentation, height, width))
    if isinstance(segmentation["counts"], list):
        return rle_api.frPyObjects(segmentation, height, width)
    return segmentation


def mask_overlap(
    objects: Objects,
    detections: Detections,
    object_rles: Sequence[dict[str, Any]],
    detection_rles: Sequence[dict[str, Any]],
) -> Overlap:
    """IoU of masks; with a crowd, the share of the detection inside."""

    def overlap(detection_rows: np.ndarray, object_rows: np.ndarray) -> np.ndarray:
        # The pairs of an image and category are all its detections with all its objects.
        images, categories = objects.images[object_rows], objects.categories[object_rows]
        is_new = (images[1:] != images[:-1]) | (categories[1:] != categories[:-1])
        borders = np.r_[0, np.flatnonzero(is_new) + 1, len(object_rows)]
        ious = np.zeros(len(object_rows))
        for begin, end in itertools.pairwise(borders):
            if begin == end:
                continue
            found = detection_rows[begin:end]
            count = int(np.searchsorted(found != found[0], True)) or end - begin
            truth = object_rows[begin : begin + count]
            ious[begin:end] = rle_api.iou(
                [detection_rles[row] for row in found[::count]],
                [object_rles[row] for row in truth],
                [int(flag) for flag in objects.is_crowd[truth]],
            ).reshape(-1)
        return ious

    return overlap
