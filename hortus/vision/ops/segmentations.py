"""COCO's segmentations, polygons or run-lengths, as compressed run-lengths of the whole image."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from faster_coco_eval.core import mask as rle_api

_LEAST_CORNERS = 3


def encode_segmentation(segmentation: Any, height: int, width: int) -> bytes:
    """The compressed run-lengths of an object's mask, as pycocotools writes them.

    Args:
        segmentation: polygons, a list of lists of x, y, x, y, ... in pixels, whose areas are
            united; or `counts` and `size` of run-lengths, compressed or not; or nothing.
        height: of the image.
        width: of the image.

    Returns:
        The code; empty for nothing, and for polygons of less than three corners.

    Raises:
        ValueError: it is none of these, or is of another image's size.
    """
    if not segmentation:
        return b""
    if isinstance(segmentation, dict):
        return _encode_runs(segmentation, height, width)
    if not isinstance(segmentation, list):
        raise ValueError(f"expected polygons or run-lengths, got {_short(segmentation)}")
    if not isinstance(segmentation[0], (list, dict)):
        segmentation = [segmentation]  # some tools leave the outer list out
    polygons = [_checked_polygon(each) for each in segmentation]
    polygons = [each for each in polygons if len(each) >= 2 * _LEAST_CORNERS]
    if not polygons:
        return b""
    parts = rle_api.frPyObjects(polygons, height, width)
    whole = parts[0] if len(parts) == 1 else rle_api.merge(parts)
    return _as_bytes(whole["counts"])


def encode_bitmap(mask: np.ndarray) -> bytes:
    """The compressed run-lengths of a bitmap [height, width], where all but 0 is the object."""
    encoded = rle_api.encode(np.asfortranarray(mask != 0, dtype=np.uint8))
    return _as_bytes(encoded["counts"])


def encode_labels(labels: np.ndarray, numbers: Sequence[int]) -> list[bytes]:
    """The compressed run-lengths of objects in one image of their numbers.

    Args:
        labels: number of the object at each pixel, [height, width] of integers.
        numbers: of the objects to encode.

    Returns:
        A code for each number; an empty one where no pixel has it.
    """
    line = labels.T.reshape(-1)
    begins = np.r_[0, np.flatnonzero(line[1:] != line[:-1]) + 1]
    ends, values = np.r_[begins[1:], len(line)], line[begins]
    codes = []
    for number in numbers:
        chosen = values == number
        borders = np.stack([begins[chosen], ends[chosen]], axis=1).reshape(-1)
        if not len(borders):
            codes.append(b"")
            continue
        # Zeros after the last run are not written by others either where there are none.
        borders = borders if borders[-1] == len(line) else np.r_[borders, len(line)]
        runs = {"size": list(labels.shape), "counts": np.diff(borders, prepend=0).tolist()}
        codes.append(_as_bytes(rle_api.frPyObjects(runs, *labels.shape)["counts"]))
    return codes


def decode_bitmap(code: bytes, height: int, width: int) -> np.ndarray:
    """The bitmap of compressed run-lengths, uint8 [height, width], 0 or 1; of no code, zeros."""
    if not code:
        return np.zeros((height, width), np.uint8)
    return rle_api.decode({"size": [height, width], "counts": code})


def measure_codes(
    codes: Sequence[bytes] | np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of masks, float64 [n], and the boxes around them, float64 [n, 4]; 0 for no pixels.

    Args:
        codes: compressed run-lengths of n masks.
        sizes: height and width of their images, [n, 2].
    """
    areas, boxes = np.zeros(len(codes)), np.zeros((len(codes), 4))
    used = [row for row, code in enumerate(codes) if code]
    rles = [{"size": [int(side) for side in sizes[row]], "counts": codes[row]} for row in used]
    if rles:
        areas[used] = rle_api.area(rles)
        x, y, width, height = np.asarray(rle_api.toBbox(rles), np.float64).reshape(-1, 4).T
        boxes[used] = np.stack([y, x, y + height, x + width], axis=1)
    return areas, boxes


def crosses_itself(polygon: Sequence[float]) -> bool:
    """Whether sides of a polygon x, y, x, y, ... cross; those that only touch do not."""
    corners = np.asarray(polygon, np.float64).reshape(-1, 2)
    begin, end = corners, np.roll(corners, -1, axis=0)
    # On which side of each side, the rows, the begin of each other, the columns, lies.
    along = end - begin
    offset = begin[None] - begin[:, None]
    of_begin = np.sign(along[:, None, 0] * offset[..., 1] - along[:, None, 1] * offset[..., 0])
    of_end = np.roll(of_begin, -1, axis=1)
    divides = of_begin * of_end < 0
    return bool(np.any(divides & divides.T))


def _encode_runs(segmentation: dict[str, Any], height: int, width: int) -> bytes:
    counts, size = segmentation.get("counts"), segmentation.get("size")
    if not isinstance(size, Sequence) or list(size) != [height, width]:
        raise ValueError(
            f"its run-lengths are of height and width {size}, the image has {[height, width]}"
        )
    if isinstance(counts, list):
        if any(not isinstance(run, int) or run < 0 for run in counts):
            raise ValueError(f"run-lengths must be whole numbers from 0 on, got {_short(counts)}")
        if sum(counts) != height * width:
            raise ValueError(
                f"its run-lengths add up to {sum(counts)}, the image has {height * width} pixels"
            )
        return _as_bytes(rle_api.frPyObjects(segmentation, height, width)["counts"])
    if not isinstance(counts, (str, bytes)):
        raise ValueError(f"expected counts as a list or as text, got {_short(counts)}")
    code = _as_bytes(counts)
    total = pixels_of(code)
    if total != height * width:
        raise ValueError(
            f"its run-lengths add up to {total}, the image has {height * width} pixels"
        )
    return code


def pixels_of(code: bytes) -> int:
    """Sum of all runs of a code: the pixels of its image, if it is whole.

    Raises:
        ValueError: there are characters in it that no code has, or its last number goes on.
    """
    groups = np.frombuffer(code, np.uint8).astype(np.int64) - 48
    is_last = groups < 32
    if len(groups) == 0 or groups.min() < 0 or groups.max() >= 64 or not is_last[-1]:
        raise ValueError(f"these are no run-lengths: {_short(code)}")
    ends = np.flatnonzero(is_last)
    begins = np.r_[0, ends[:-1] + 1]
    shifts = 5 * (np.arange(len(groups)) - np.repeat(begins, ends - begins + 1))
    numbers = np.add.reduceat((groups & 31) << shifts, begins)
    numbers -= np.where(groups[ends] & 16, np.int64(1) << 5 * (ends - begins + 1), 0)
    # From the fourth on, numbers are differences from the one two before.
    odd, even = np.cumsum(numbers[1::2]), np.cumsum(numbers[2::2])
    return int(numbers[0] + odd.sum() + even.sum())


def _checked_polygon(polygon: Any) -> list[float]:
    is_list = isinstance(polygon, list) and len(polygon) % 2 == 0
    if not is_list or not all(isinstance(value, (int, float)) for value in polygon):
        raise ValueError(f"a polygon must be a list of x, y, x, y, ..., got {_short(polygon)}")
    if not np.all(np.isfinite(polygon)):
        raise ValueError("a polygon has corners that are no numbers")
    return polygon


def _as_bytes(counts: Any) -> bytes:
    return counts.encode() if isinstance(counts, str) else bytes(counts)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
