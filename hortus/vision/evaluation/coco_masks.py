"""Instance masks for evaluation: pasted into their image, run-length encoded, compared."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from faster_coco_eval.core import mask as rle_api

from hortus.vision.evaluation.coco_matching import Detections, Objects, Overlap
from hortus.vision.ops.segmentations import encode_segmentation

_THRESHOLD = 0.5
"""Mask values above belong to the object."""


def encode(masks: np.ndarray) -> list[dict[str, Any]]:
    """Run-length encodings of binary masks [n, height, width]."""
    if not len(masks):
        return []
    return rle_api.encode(np.asfortranarray(np.moveaxis(masks, 0, -1).astype(np.uint8)))


def decode(rles: Sequence[dict[str, Any]]) -> np.ndarray:
    """Masks of one image, bool [n, height, width], from their run-length encodings."""
    if not len(rles):
        return np.zeros((0, 1, 1), bool)
    return np.moveaxis(rle_api.decode(list(rles)), -1, 0).astype(bool)


def from_codes(codes: np.ndarray, lengths: np.ndarray, size: Sequence[int]) -> list[dict[str, Any]]:
    """Run-length encodings of one image, as its batch holds them.

    Args:
        codes: characters of all of them, one after the other, uint8 [l].
        lengths: characters of each, [n]; one without any is a mask without pixels.
        size: height and width of the image.
    """
    ends = np.cumsum(lengths)
    if len(ends) and ends[-1] > len(codes):
        raise ValueError(f"{ends[-1]} characters of masks are told, but there are {len(codes)}")
    text = codes.astype(np.uint8).tobytes()
    size = [int(side) for side in size]
    return [
        {"size": size, "counts": text[end - length : end]} if length else _nothing(size)
        for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
    ]


def _nothing(size: Sequence[int]) -> dict[str, Any]:
    return rle_api.frPyObjects({"size": list(size), "counts": [size[0] * size[1]]}, *size)


def paste_encoded(
    mask: np.ndarray, box: np.ndarray, height: int, width: int, aligned: bool = False
) -> dict[str, Any]:
    """The run-length encoding of `paste`, whose bitmap is not made: only the box is looked at."""
    size = [height, width]
    if not np.all(np.isfinite(box)):
        return _nothing(size)
    top, left, pixels = _paste(mask, box, height, width, aligned)
    # Runs go down columns: they begin and end where a column, with 0 around it, changes.
    column, row = np.nonzero(np.diff(np.pad(pixels.T, ((0, 0), (1, 1))).astype(np.int8), axis=1))
    borders = (left + column) * height + top + row
    # From the bottom of a column the run may go on at the top of the next one.
    is_border = np.ones(len(borders), bool)
    goes_on = np.flatnonzero(borders[1:-1:2] == borders[2::2])
    is_border[2 * goes_on + 1] = is_border[2 * goes_on + 2] = False
    borders = borders[is_border]
    if not len(borders) or borders[-1] < height * width:
        borders = np.r_[borders, height * width]
    runs = np.diff(borders, prepend=0).tolist()
    return rle_api.frPyObjects({"size": size, "counts": runs}, height, width)


def paste(
    mask: np.ndarray, box: np.ndarray, height: int, width: int, aligned: bool = False
) -> np.ndarray:
    """The mask of a box, [h, w] of 0..1, as the object's pixels, bool [height, width].

    Args:
        mask: [h, w].
        box: ymin, xmin, ymax, xmax in pixels.
        height: of the image.
        width: of the image.
        aligned: whether each pixel in the box looks its value up where it lies, between the middles
            of cells. Otherwise the mask gets a margin of one cell of 0, the box grows with it and
            is brought to whole pixels, and the mask is resized to it: an older custom, which makes
            objects a little larger.
    """
    pasted = np.zeros((height, width), bool)
    if not np.all(np.isfinite(box)):
        return pasted
    top, left, pixels = _paste(mask, box, height, width, aligned)
    pasted[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    return pasted


def _paste(
    mask: np.ndarray, box: np.ndarray, height: int, width: int, aligned: bool
) -> tuple[int, int, np.ndarray]:
    """First row and column of the part of the image that a mask fills, and its pixels, bool."""
    span, mask = (_aligned_span, mask) if aligned else (_span, np.pad(mask, 1))
    top, rows = span(box[0], box[2], mask.shape[0], height)
    left, columns = span(box[1], box[3], mask.shape[1], width)
    # Two cells make up each pixel of a side. A matrix product would be shorter, but starts threads,
    # which takes ten times as long where other work goes on.
    values = _between(mask.astype(np.float64), rows)
    return top, left, _between(values.T, columns).T > _THRESHOLD


def _between(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Interpolates between rows [cells, n]; beyond the ends, takes the last one: [places, n]."""
    below = np.floor(places).astype(int)
    share = (places - below)[:, None]
    first, second = (np.clip(each, 0, len(values) - 1) for each in (below, below + 1))
    return values[first] * (1.0 - share) + values[second] * share


def _span(begin: float, end: float, cells: int, limit: int) -> tuple[int, np.ndarray]:
    """Where a mask lies along one side of the image.

    Args:
        begin: of the box.
        end: of the box.
        cells: of the mask along this side, its margin included.
        limit: pixels of the image along this side.

    Returns:
        First pixel, and where the middle of each pixel lies among the middles of cells, [pixels].
    """
    middle, half = (begin + end) / 2, (end - begin) / 2 * cells / (cells - 2)
    first, last = int(middle - half), int(middle + half)
    size = max(last - first + 1, 1)
    shown = np.arange(max(first, 0), max(min(first + size, limit), max(first, 0)))
    return max(first, 0), (shown - first + 0.5) * cells / size - 0.5


def _aligned_span(begin: float, end: float, cells: int, limit: int) -> tuple[int, np.ndarray]:
    """The same for the pixels whose middles are in the box, by a mask without margin."""
    first = min(max(int(np.ceil(begin - 0.5)), 0), limit)
    last = max(min(int(np.ceil(end - 0.5)), limit), first)
    shares = (np.arange(first, last) + 0.5 - begin) / max(end - begin, 1e-6)
    return first, shares * cells - 0.5


def areas(rles: Sequence[dict[str, Any]]) -> np.ndarray:
    """Number of pixels of each, float64."""
    return np.asarray(rle_api.area(list(rles)), np.float64) if len(rles) else np.zeros(0)


def from_segmentation(segmentation: Any, height: int, width: int) -> dict[str, Any]:
    """The encoding of polygons, or of an encoding in any of COCO's ways."""
    code = encode_segmentation(segmentation, height, width)
    return {"size": [height, width], "counts": code} if code else _nothing([height, width])


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
