"""How much boxes overlap: each box of one set with each of another."""

from typing import Any

from keras import ops

from hortus.vision.ops import boxes as box_ops

# Divides instead of 0: then the dividend is 0, too.
_LEAST_AREA = 1e-8


def iou(boxes: Any, others: Any) -> Any:
    """Intersection over union.

    Args:
        boxes: [..., n, 4].
        others: [..., m, 4].

    Returns:
        [..., n, m], 0 to 1; 0 where both boxes are empty.
    """
    intersections = _intersections(boxes, others)
    unions = _unions(boxes, others, intersections)
    return intersections / ops.maximum(unions, _LEAST_AREA)


def padded_iou(boxes: Any, others: Any) -> Any:
    """Intersection over union [..., n, m], -1 where one of the two rows is padding."""
    padding = ops.logical_or(
        ops.expand_dims(box_ops.is_padding(boxes), -1),
        ops.expand_dims(box_ops.is_padding(others), -2),
    )
    return ops.where(padding, -1.0, iou(boxes, others))


def generalized_iou(boxes: Any, others: Any) -> Any:
    """Generalised intersection over union (Rezatofighi et al. 2019) [..., n, m], -1 to 1.

    It also tells apart boxes that do not meet: less the share of the enclosing box that neither
    covers.
    """
    intersections = _intersections(boxes, others)
    unions = _unions(boxes, others, intersections)
    ymin, xmin, ymax, xmax = _coordinates(boxes, -1)
    other_ymin, other_xmin, other_ymax, other_xmax = _coordinates(others, -2)
    heights = ops.relu(ops.maximum(ymax, other_ymax) - ops.minimum(ymin, other_ymin))
    widths = ops.relu(ops.maximum(xmax, other_xmax) - ops.minimum(xmin, other_xmin))
    enclosing = heights * widths
    uncovered = (enclosing - unions) / ops.maximum(enclosing, _LEAST_AREA)
    return intersections / ops.maximum(unions, _LEAST_AREA) - uncovered


def intersection_over_area(boxes: Any, others: Any) -> Any:
    """Share of each of `boxes` [..., n, 4] that each of `others` [..., m, 4] covers [..., n, m]."""
    areas = ops.expand_dims(box_ops.areas(boxes), -1)
    return _intersections(boxes, others) / ops.maximum(areas, _LEAST_AREA)


def _coordinates(boxes: Any, axis: int) -> list[Any]:
    """The four coordinates, with a new axis for the boxes of the other set."""
    return [ops.expand_dims(x, axis) for x in ops.unstack(ops.cast(boxes, "float32"), 4, axis=-1)]


def _intersections(boxes: Any, others: Any) -> Any:
    # One coordinate at a time: TensorFlow runs [n, m] faster than [n, m, 2].
    ymin, xmin, ymax, xmax = _coordinates(boxes, -1)
    other_ymin, other_xmin, other_ymax, other_xmax = _coordinates(others, -2)
    heights = ops.relu(ops.minimum(ymax, other_ymax) - ops.maximum(ymin, other_ymin))
    widths = ops.relu(ops.minimum(xmax, other_xmax) - ops.maximum(xmin, other_xmin))
    return heights * widths


def _unions(boxes: Any, others: Any, intersections: Any) -> Any:
    areas = ops.expand_dims(box_ops.areas(boxes), -1)
    return areas + ops.expand_dims(box_ops.areas(others), -2) - intersections
