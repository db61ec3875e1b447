"""What is kept of the images that were evaluated, and how batches come in."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np


class Kept:
    """Rows of detections or of objects, batch by batch; each knows the number of its image."""

    def __init__(self) -> None:
        self._parts: list[dict[str, np.ndarray]] = []
        self.rles: list[dict[str, Any]] = []
        """Run-length encodings of the rows' masks, where there are masks."""

    def add(
        self, images: np.ndarray, rles: Sequence[dict[str, Any]] = (), **columns: np.ndarray
    ) -> None:
        """Adds rows: the numbers of their images, their masks, and columns of values."""
        self._parts.append({"images": images, **columns})
        self.rles.extend(rles)

    def columns(self) -> dict[str, np.ndarray]:
        """All rows, by the name of the column."""
        return {
            name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]
        }


def as_arrays(
    values: Mapping[str, Any], required: Sequence[str], what: str
) -> dict[str, np.ndarray]:
    """The values of a batch as arrays; those of several replicas one after the other.

    Args:
        values: arrays, tensors, or lists of them, by key.
        required: keys that have to be there.
        what: the values, for an error.
    """
    missing = [key for key in required if key not in values]
    if missing:
        raise ValueError(
            f"{what} lack {', '.join(missing)}; there is {', '.join(values) or 'nothing'}"
        )
    return {key: _as_array(value) for key, value in values.items()}


def _as_array(value: Any) -> np.ndarray:
    if isinstance(value, (list, tuple)):
        return np.concatenate([_as_array(part) for part in value])
    return value if isinstance(value, np.ndarray) else keras.ops.convert_to_numpy(value)


def valid_rows(num_rows: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Which of the rows [b, n, 4] hold something, bool [b, n]."""
    return np.arange(boxes.shape[1]) < num_rows.reshape(-1, 1)


def to_xywh(boxes: np.ndarray) -> np.ndarray:
    """From ymin, xmin, ymax, xmax to x, y, width, height, float64 [n, 4]; no side is below 0."""
    begin = boxes[:, 1::-1].astype(np.float64)
    end = boxes[:, :1:-1].astype(np.float64)
    return np.concatenate([begin, np.maximum(end - begin, 0.0)], axis=1)


def look_up(table: Mapping[int, int], numbers: np.ndarray) -> np.ndarray:
    """The entry of each number, int64; -1 for numbers without one."""
    keys = np.array(sorted(table), np.int64)
    if not len(keys):
        return np.full(len(numbers), -1, np.int64)
    entries = np.array([table[key] for key in keys.tolist()], np.int64)
    places = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
    return np.where(keys[places] == numbers, entries[places], -1)
