"""Features of boxes, sampled from the level that fits the size of each (He et al. 2017)."""

from collections.abc import Mapping
from typing import Any

from keras import ops

_CANONICAL_LEVEL, _CANONICAL_SIDE = 4, 224.0
"""A box of this side, in pixels, is looked at on this level (Lin et al. 2016)."""


def multilevel_roi_align(
    features: Mapping[str, Any], boxes: Any, crop_size: int = 7, sample_offset: float = 0.5
) -> Any:
    """Samples the features of each box at the places of a grid, by linear interpolation.

    Args:
        features: by level, [batch, height, width, channels].
        boxes: [batch, n, 4], in pixels of the image.
        crop_size: side of the grid.
        sample_offset: where in its cell each place lies: 0 at the upper left, 0.5 in the middle.

    Returns:
        [batch, n, crop_size, crop_size, channels], of the type of the features.
    """
    boxes = ops.cast(boxes, "float32")
    names = sorted(features, key=int)
    levels = box_levels(boxes, int(names[0]), int(names[-1]))
    # All levels in one row of places, so that one gather serves boxes of any level.
    flat = ops.concatenate([_flatten(features[name]) for name in names], axis=1)
    sizes = [ops.shape(features[name])[1:3] for name in names]
    starts = [0]
    for height, width in sizes[:-1]:
        starts.append(starts[-1] + height * width)

    def of_level(values: list[Any]) -> Any:
        """The value of each box's level, int32 [batch, n]."""
        table = ops.stack([ops.cast(value, "int32") for value in values])
        return ops.take(table, levels - int(names[0]), axis=0)

    heights, widths = of_level([h for h, _ in sizes]), of_level([w for _, w in sizes])
    scaled = boxes / ops.expand_dims(ops.cast(2**levels, "float32"), -1)
    ys, xs = grid_positions(scaled, crop_size, sample_offset)
    y_places, y_weights = _neighbours(ys, heights)
    x_places, x_weights = _neighbours(xs, widths)

    start, width = (ops.reshape(x, (*ops.shape(x), 1, 1)) for x in (of_level(starts), widths))
    output: Any = 0.0
    for rows, row_weights in zip(y_places, y_weights, strict=True):
        for columns, column_weights in zip(x_places, x_weights, strict=True):
            index = start + ops.expand_dims(rows, -1) * width + ops.expand_dims(columns, -2)
            weights = ops.expand_dims(row_weights, -1) * ops.expand_dims(column_weights, -2)
            values = _gather(flat, index)
            output = output + values * ops.cast(ops.expand_dims(weights, -1), values.dtype)
    return output


def box_levels(boxes: Any, min_level: int, max_level: int) -> Any:
    """The level on which each of `boxes` [..., 4] is looked at, int32 [...]."""
    sides = ops.maximum(boxes[..., 2:] - boxes[..., :2], 0.0)
    area = sides[..., 0] * sides[..., 1]
    # The logarithm of 0 is no number, and no level.
    octaves = ops.log2(ops.maximum(ops.sqrt(area), 1e-6) / _CANONICAL_SIDE)
    levels = ops.cast(ops.floor(octaves), "int32") + _CANONICAL_LEVEL
    return ops.clip(levels, min_level, max_level)


def grid_positions(boxes: Any, size: int, offset: float) -> tuple[Any, Any]:
    """Rows and columns [..., size] of the places of a grid over each of `boxes` [..., 4]."""
    shares = (ops.arange(size, dtype="float32") + offset) / size
    begin, sides = boxes[..., :2], boxes[..., 2:] - boxes[..., :2]
    ys = begin[..., :1] + sides[..., :1] * shares
    xs = begin[..., 1:] + sides[..., 1:] * shares
    return ys, xs


def _neighbours(places: Any, limits: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The whole places before and after each, and their shares of it.

    Args:
        places: float32 [batch, n, size].
        limits: number of whole places, int32 [batch, n].
    """
    last = ops.expand_dims(limits, -1) - 1
    places = ops.maximum(places, 0.0)
    before = ops.cast(ops.floor(places), "int32")
    share = places - ops.cast(before, "float32")
    return (ops.minimum(before, last), ops.minimum(before + 1, last)), (1.0 - share, share)


def _flatten(level: Any) -> Any:
    batch, height, width, channels = ops.shape(level)
    return ops.reshape(level, (batch, height * width, channels))


def _gather(flat: Any, index: Any) -> Any:
    """Rows `index` [batch, ...] of `flat` [batch, places, channels]."""
    batch, places, channels = ops.shape(flat)
    shape = ops.shape(index)
    offset = ops.reshape(
        ops.arange(batch, dtype="int32") * places, (batch, *[1] * (len(shape) - 1))
    )
    rows = ops.reshape(flat, (batch * places, channels))
    return ops.take(rows, index + offset, axis=0)
