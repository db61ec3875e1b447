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
    if boxes.shape[2] != 1:
        return None
    boxes = boxes[:, :, 0, :]
    n, classes = tf.shape(scores)[1], scores.shape[2]
    scores = tf.where(scores > score_threshold, scores, -1.0)
    areas = _area(boxes)
    found = []
    for _ in range(max_detections):
        flat = tf.reshape(scores, [-1, n * classes])
        place, best = tf.argmax(flat, -1, tf.int32), tf.reduce_max(flat, -1)
        row, column = place // classes, place % classes
        box = tf.gather(boxes, row[:, None], batch_dims=1)
        top = tf.maximum(box[..., :2], boxes[..., :2])
        bottom = tf.minimum(box[..., 2:], boxes[..., 2:])
        both = tf.reduce_prod(tf.maximum(bottom - top, 0.0), -1)
        overlap = both / tf.maximum(areas + _area(box) - both, 1e-8)
        gone = (overlap > iou_threshold) | (tf.range(n)[None] == row[:, None])
        mine = tf.range(classes)[None] == column[:, None]
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


def _area(boxes: Any) -> Any:
    return tf.reduce_prod(boxes[..., 2:] - boxes[..., :2], axis=-1)
