"""Anchors: the boxes that predictions start from, at every place of every feature level."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import ops

from hortus.vision.ops import boxes as box_ops


@dataclasses.dataclass(frozen=True)
class AnchorGenerator:
    """Makes the anchors of an image.

    Level l has one place per 2^l pixels, rounded up. Where the image is no multiple of that, the
    places are spread evenly over it.

    Args:
        min_level: the finest level.
        max_level: the coarsest level.
        num_scales: sizes per place, spread evenly over one octave.
        aspect_ratios: width / height of the boxes of each size.
        anchor_size: side of the smallest square anchor, in places of its level.
    """

    min_level: int
    max_level: int
    num_scales: int
    aspect_ratios: tuple[float, ...]
    anchor_size: float

    def __post_init__(self):
        # As a tuple it can be hashed, whatever sequence was given.
        object.__setattr__(self, "aspect_ratios", tuple(self.aspect_ratios))

    @property
    def num_per_location(self) -> int:
        """Anchors at each place."""
        return self.num_scales * len(self.aspect_ratios)

    def __call__(self, image_size: Any) -> dict[str, Any]:
        """The anchors of an image of `image_size` (height, width), in pixels.

        Returns:
            [height, width, num_per_location * 4] float32 per level, keyed '3', '4' and so on, each
            place ordered by size, then ratio. Constant arrays if `image_size` is given in numbers;
            tensors if it is a tensor.
        """
        if _is_static(image_size):
            return dict(_constants(self, int(image_size[0]), int(image_size[1])))
        return {
            str(level): self._level(level, image_size, ops)
            for level in range(self.min_level, self.max_level + 1)
        }

    def boxes(self, image_size: Any) -> Any:
        """The anchors of all levels [n, 4], finest first."""
        levels = self(image_size)
        if _is_static(image_size):
            return np.concatenate([x.reshape(-1, 4) for x in levels.values()])
        return ops.concatenate([ops.reshape(x, (-1, 4)) for x in levels.values()])

    def _level(self, level: int, image_size: Any, xp: Any) -> Any:
        """The anchors of one level, computed by NumPy or by keras.ops."""
        height, width = image_size[0], image_size[1]
        rows, columns = -(-height // 2**level), -(-width // 2**level)
        ys = _centres(height, rows, xp)
        xs = _centres(width, columns, xp)
        ys, xs = xp.meshgrid(ys, xs, indexing="ij")
        centres = xp.expand_dims(xp.stack([ys, xs, ys, xs], axis=-1), -2)
        anchors = centres + xp.array(self._offsets(level), dtype="float32")
        return xp.reshape(anchors, (rows, columns, self.num_per_location * 4))

    def _offsets(self, level: int) -> list[list[float]]:
        """The anchors of one place, relative to it."""
        scales = [2.0 ** (i / self.num_scales) for i in range(self.num_scales)]
        offsets = []
        for scale, ratio in itertools.product(scales, self.aspect_ratios):
            side = self.anchor_size * 2.0**level * scale
            y, x = side / math.sqrt(ratio) / 2, side * math.sqrt(ratio) / 2
            offsets.append([-y, -x, y, x])
        return offsets


def split_levels(values: Any, levels: Mapping[str, Any]) -> dict[str, Any]:
    """Cuts what was computed for all anchors into levels.

    Args:
        values: [..., n, k], in the order of `AnchorGenerator.boxes`.
        levels: the anchors per level, [height, width, num_per_location * 4], that n counts.

    Returns:
        [..., height, width, num_per_location * k] per level.
    """
    start, parts = 0, {}
    for level, anchors in levels.items():
        rows, columns, coordinates = ops.shape(anchors)
        count = rows * columns * (coordinates // 4)
        shape = (*ops.shape(values)[:-2], rows, columns, coordinates // 4 * values.shape[-1])
        parts[level] = ops.reshape(values[..., start : start + count, :], shape)
        start += count
    return parts


def inside(anchors: Any, image_size: Any) -> Any:
    """Which of `anchors` [..., 4] lie entirely in the image, bool [...]."""
    anchors = ops.cast(anchors, "float32")
    return ops.all(box_ops.clip(anchors, image_size) == anchors, axis=-1)


def _is_static(image_size: Any) -> bool:
    return not any(ops.is_tensor(x) for x in (image_size, image_size[0], image_size[1]))


def _centres(length: Any, count: Any, xp: Any) -> Any:
    if xp is np:
        places = np.arange(count, dtype="float32") + np.float32(0.5)
        return places * np.float32(length / count)
    places = ops.cast(ops.arange(count), "float32") + 0.5
    return places * (ops.cast(length, "float32") / ops.cast(count, "float32"))


@functools.lru_cache(maxsize=32)
def _constants(generator: AnchorGenerator, height: int, width: int) -> dict[str, np.ndarray]:
    levels = {}
    for level in range(generator.min_level, generator.max_level + 1):
        levels[str(level)] = generator._level(level, (height, width), np)
        levels[str(level)].flags.writeable = False
    return levels
