"""Models as functions of operations that runtimes other than TensorFlow have too."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Optional

import keras
import tensorflow as tf

from hortus.engine import kernels
from hortus.vision.serving.formats.saved_model import PIXELS
from hortus.vision.serving.services.service import Service

_TRACING = threading.Lock()
_MANY = 200
"""More boxes than these are not looked for one by one where there are no loops."""
_ROUNDS = 40
"""Longest chain of boxes, of which each decides about the next, that is followed to its end."""


def trace(service: Service, model: Any, unrolled: bool = False) -> Any:
    """A `tf.function`, traced, from `PIXELS` to the outputs of the service.

    Args:
        service: of the task.
        model: the Keras model.
        unrolled: whether suppression is a long list of operations instead of a loop.
    """

    def image_tensor(images: tf.Tensor) -> dict[str, tf.Tensor]:
        # Only TensorFlow resizes integers.
        inputs = service.inputs_of_pixels(tf.cast(images, tf.float32))
        return service.exported(model, inputs)

    function = tf.function(image_tensor, input_signature=[PIXELS], autograph=False)
    with _portable_operations(_suppress_unrolled if unrolled else _no_kernel):
        function.get_concrete_function()
    return function


@contextlib.contextmanager
def _portable_operations(suppress: Callable[..., Any]) -> Iterator[None]:
    """What is traced inside has no operation that converters do not know.

    These are TensorFlow's combined suppression, and the bit-wise ones by which Keras tells 0 from
    -0 in `argmax`.
    """
    with _TRACING:
        former, keras.ops.argmax = keras.ops.argmax, _argmax
        try:
            with kernels.non_max_suppression.replaced(suppress):
                yield
        finally:
            keras.ops.argmax = former


def _argmax(x: Any, axis: Optional[int] = None, keepdims: bool = False) -> Any:
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    found = tf.argmax(x, axis, tf.int32)
    return tf.expand_dims(found, axis) if keepdims else found


def _no_kernel(boxes: Any, scores: Any, **settings: Any) -> None:
    """See `kernels.non_max_suppression`: a loop does it."""


def _suppress_unrolled(
    boxes: Any,
    scores: Any,
    *,
    iou_threshold: float,
    score_threshold: float,
    max_detections: int,
) -> Optional[tuple[Any, Any, Any, Any]]:
    """See `kernels.non_max_suppression`: the same without a loop in the graph."""
    if max_detections > _MANY:
        return _suppress_in_rounds(boxes, scores, iou_threshold, score_threshold, max_detections)
    n, classes = tf.shape(scores)[1], scores.shape[2]
    shared = boxes.shape[2] == 1
    scores = tf.where(scores > score_threshold, scores, -1.0)
    found = []
    for _ in range(max_detections):
        flat = tf.reshape(scores, [-1, n * classes])
        place, best = tf.argmax(flat, -1, tf.int32), tf.reduce_max(flat, -1)
        row, column = place // classes, place % classes
        mine = tf.range(classes)[None] == column[:, None]
        # As a sum of products: OpenVINO stumbles over a transposition before a gather.
        own = tf.cast(mine, tf.float32)[:, None, :, None]
        others = boxes[:, :, 0] if shared else tf.reduce_sum(boxes * own, axis=2)
        box = tf.gather(others, row[:, None], batch_dims=1)
        gone = (_overlaps(box, others)[:, 0] > iou_threshold) | (tf.range(n)[None] == row[:, None])
        scores = tf.where(gone[:, :, None] & mine[:, None, :], -1.0, scores)
        is_found = best > score_threshold
        found.append(
            (
                tf.where(is_found[:, None], box[:, 0], 0.0),
                tf.where(is_found, column, 0),
                tf.where(is_found, best, 0.0),
            )
        )
    chosen, columns, best = (tf.stack(values, axis=1) for values in zip(*found, strict=True))
    count = tf.reduce_sum(tf.cast(best > score_threshold, tf.int32), axis=1)
    return chosen, columns, best, count


def _suppress_in_rounds(
    boxes: Any, scores: Any, iou_threshold: float, score_threshold: float, max_detections: int
) -> Optional[tuple[Any, Any, Any, Any]]:
    """The same of many boxes of one class: see `ops.nms.survivors`, with rounds enough for most."""
    if scores.shape[2] != 1:
        return None
    scores, order = tf.math.top_k(scores[..., 0], scores.shape[1])
    boxes = tf.gather(boxes[:, :, 0], order, batch_dims=1)
    numbers = tf.range(scores.shape[1])
    drops = (_overlaps(boxes, boxes) > iou_threshold) & (numbers[None, :] < numbers[:, None])
    drops, stays = tf.cast(drops, tf.float32), tf.ones_like(scores)
    for _ in range(_ROUNDS):
        stays = tf.cast(tf.linalg.matvec(drops, stays) < 0.5, tf.float32)
    scores = tf.where((stays > 0.5) & (scores > score_threshold), scores, 0.0)
    scores, order = tf.math.top_k(scores, max_detections)
    boxes = tf.gather(boxes, order, batch_dims=1)
    is_found = scores > score_threshold
    count = tf.reduce_sum(tf.cast(is_found, tf.int32), axis=1)
    return tf.where(is_found[..., None], boxes, 0.0), tf.zeros_like(order), scores, count


def _overlaps(boxes: Any, others: Any) -> Any:
    """IoU of boxes [batch, n, 4] with others [batch, m, 4]: [batch, n, m]."""
    top = tf.maximum(boxes[:, :, None, :2], others[:, None, :, :2])
    bottom = tf.minimum(boxes[:, :, None, 2:], others[:, None, :, 2:])
    both = tf.reduce_prod(tf.maximum(bottom - top, 0.0), -1)
    areas = _area(boxes)[:, :, None] + _area(others)[:, None, :]
    return both / tf.maximum(areas - both, 1e-8)


def _area(boxes: Any) -> Any:
    return tf.reduce_prod(boxes[..., 2:] - boxes[..., :2], axis=-1)
