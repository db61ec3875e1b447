"""Boxes: rows of (ymin, xmin, ymax, xmax).

Every function takes boxes of shape [..., 4]. An image size is (height, width): two numbers for all
boxes, or a tensor of shape [batch, 2] with boxes [batch, ..., 4].
"""

from typing import Any

import keras
from keras import ops

PADDING = -1.0
"""All four coordinates of a row that is no box."""


def areas(boxes: Any) -> Any:
    """Height times width [...], in square pixels; 0 where a side is not positive."""
    boxes = ops.cast(boxes, "float32")
    sides = ops.relu(boxes[..., 2:] - boxes[..., :2])
    return sides[..., 0] * sides[..., 1]


def is_padding(boxes: Any) -> Any:
    """Which rows are padding, bool [...]: those with a negative upper bound."""
    return ops.max(ops.cast(boxes, "float32"), axis=-1) < 0


def is_nonempty(boxes: Any) -> Any:
    """Which boxes have a height and a width, bool [...]."""
    return ops.all(boxes[..., 2:] > boxes[..., :2], axis=-1)


def clip(boxes: Any, image_size: Any) -> Any:
    """Cuts off what lies outside of the image."""
    boxes = ops.cast(boxes, "float32")
    return ops.maximum(ops.minimum(boxes, _four(image_size, boxes)), 0.0)


def normalize(boxes: Any, image_size: Any) -> Any:
    """Turns pixels into shares of the image's height and width."""
    boxes = ops.cast(boxes, "float32")
    return boxes / _four(image_size, boxes)


def denormalize(boxes: Any, image_size: Any) -> Any:
    """Turns shares of the image's height and width into pixels."""
    boxes = ops.cast(boxes, "float32")
    return boxes * _four(image_size, boxes)


def flip_left_right(boxes: Any, image_size: Any = (1.0, 1.0)) -> Any:
    """Mirrors boxes left to right; by default they are shares of the image size."""
    boxes = ops.cast(boxes, "float32")
    width = _four(image_size, boxes)[..., 1]
    ymin, xmin, ymax, xmax = ops.unstack(boxes, 4, axis=-1)
    return ops.stack([ymin, width - xmax, ymax, width - xmin], axis=-1)


def flip_up_down(boxes: Any, image_size: Any = (1.0, 1.0)) -> Any:
    """Mirrors boxes top to bottom; by default they are shares of the image size."""
    boxes = ops.cast(boxes, "float32")
    height = _four(image_size, boxes)[..., 0]
    ymin, xmin, ymax, xmax = ops.unstack(boxes, 4, axis=-1)
    return ops.stack([height - ymax, xmin, height - ymin, xmax], axis=-1)


def to_xywh(boxes: Any) -> Any:
    """As (xmin, ymin, width, height), which COCO files use."""
    ymin, xmin, ymax, xmax = ops.unstack(ops.cast(boxes, "float32"), 4, axis=-1)
    return ops.stack([xmin, ymin, xmax - xmin, ymax - ymin], axis=-1)


def from_xywh(boxes: Any) -> Any:
    """From (xmin, ymin, width, height)."""
    xmin, ymin, width, height = ops.unstack(ops.cast(boxes, "float32"), 4, axis=-1)
    return ops.stack([ymin, xmin, ymin + height, xmin + width], axis=-1)


def to_cycxhw(boxes: Any) -> Any:
    """As (centre y, centre x, height, width)."""
    boxes = ops.cast(boxes, "float32")
    low, high = boxes[..., :2], boxes[..., 2:]
    return ops.concatenate([(low + high) / 2, high - low], axis=-1)


def from_cycxhw(boxes: Any) -> Any:
    """From (centre y, centre x, height, width)."""
    boxes = ops.cast(boxes, "float32")
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    return ops.concatenate([centre - half, centre + half], axis=-1)


def outer(boxes: Any, image_size: Any, scale: float) -> Any:
    """Grows boxes about their centres by the factor `scale` >= 1 and cuts them at the image."""
    if scale < 1.0:
        raise ValueError(f"a box grows by a factor of at least 1.0, got scale={scale}")
    if scale == 1.0:
        return clip(boxes, image_size)
    centre, sides = ops.split(to_cycxhw(boxes), 2, axis=-1)
    return clip(from_cycxhw(ops.concatenate([centre, sides * scale], axis=-1)), image_size)


def filter_by_size(
    boxes: Any, scores: Any, image_size: Any, min_size: float = 0.0
) -> tuple[Any, Any]:
    """Sets to 0 the boxes, and their scores [...], that are too small or centred off the image.

    Args:
        boxes: [..., 4].
        scores: [...].
        image_size: (height, width) or [batch, 2].
        min_size: both sides must be longer than this, in pixels.
    """
    placed = to_cycxhw(boxes)
    centre, sides = placed[..., :2], placed[..., 2:]
    limit = _four(image_size, placed)[..., :2]
    keep = ops.all((sides > min_size) & (centre > 0) & (centre < limit), axis=-1)
    return _where(keep, boxes), ops.where(keep, scores, ops.zeros_like(scores))


def filter_by_score(boxes: Any, scores: Any, min_score: float) -> tuple[Any, Any]:
    """Sets to 0 the boxes, and to -1 the scores [...], that are not above `min_score`."""
    keep = scores > min_score
    return _where(keep, boxes), ops.where(keep, scores, -ops.ones_like(scores))


def top_k(scores: Any, k: int, *values: Any) -> tuple[Any, ...]:
    """The `k` best rows of each image, best first.

    Args:
        scores: [batch, n].
        k: how many; all of them, sorted, if there are fewer.
        *values: tensors [batch, n, ...] whose rows belong to the scores.

    Returns:
        The scores [batch, k] and each of `values` as [batch, k, ...].
    """
    scores, index = ops.top_k(scores, min(k, scores.shape[1]))
    return scores, *(take(value, index) for value in values)


def take(values: Any, index: Any) -> Any:
    """Picks rows image by image: `values` [batch, n, ...] at `index` [batch, k]."""
    values, index = ops.convert_to_tensor(values), ops.convert_to_tensor(index)
    if keras.backend.backend() == "jax":
        # Rows of the flattened batch would make devices that share a batch exchange it.
        return ops.vectorized_map(lambda pair: ops.take(pair[0], pair[1], axis=0), (values, index))
    # take_along_axis would go by elements, vectorized_map trace anew at each eager call.
    batch, n, *rest = ops.shape(values)
    rows = ops.expand_dims(n * ops.arange(batch, dtype="int32"), -1) + ops.cast(index, "int32")
    return ops.take(ops.reshape(values, (-1, *rest)), rows, axis=0)


def _where(keep: Any, boxes: Any) -> Any:
    return ops.where(ops.expand_dims(keep, -1), boxes, ops.zeros_like(boxes))


def _four(image_size: Any, boxes: Any) -> Any:
    """Height, width, height, width, in a shape that goes with that of `boxes`."""
    size = ops.cast(ops.convert_to_tensor(image_size), "float32")
    size = ops.concatenate([size, size], axis=-1)
    while 1 < len(size.shape) < len(boxes.shape):
        size = ops.expand_dims(size, -2)
    return size
