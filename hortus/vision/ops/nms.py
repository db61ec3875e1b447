"""Non-maximum suppression (NMS): of boxes that overlap, the best one stays.

Boxes are chosen greedily, best first, over all classes at once, until there are enough. As a box
suppresses only boxes of its own class, that gives what suppression class by class followed by the
choice of the best would give, without computing boxes that are not among the best.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from keras import ops

from hortus.vision.ops import boxes as box_ops
from hortus.vision.ops import iou

ALIASES = {
    "v1": "per_class",
    "v2": "per_class",
    "v3": "per_class",
    "batched": "per_class",
    "tflite": "per_class",
}
"""Names of existing configs. They tell implementations of the same suppression apart."""

# Score of what is out of the race.
_GONE = -1.0


class Detections(NamedTuple):
    """What was found in each image of a batch, best first, padded with 0."""

    boxes: Any
    """float32 [batch, k, 4]."""
    classes: Any
    """Number of the column of the scores, int32 [batch, k]."""
    scores: Any
    """float32 [batch, k]."""
    count: Any
    """int32 [batch]."""
    attributes: dict[str, Any]
    """[batch, k, size] each."""


Kernel = Callable[..., tuple[Any, Any, Any, Any] | None]
"""A faster way to suppress, if there is one here: called with boxes [batch, n, q, 4], scores
[batch, n, c] and the keywords `iou_threshold`, `score_threshold` and `max_detections`, it returns
boxes, classes, scores and count as in `Detections`, or None."""


def suppress(
    method: str,
    boxes: Any,
    scores: Any,
    *,
    iou_threshold: float,
    score_threshold: float = 0.0,
    max_detections: int,
    top_k: int | None = None,
    sigma: float | None = None,
    attributes: Mapping[str, Any] | None = None,
    kernel: Kernel | None = None,
) -> Detections:
    """Suppresses by the method called `method`, a key of `METHODS` or `ALIASES`.

    Args:
        method: what suppresses what.
        boxes: [batch, n, q, 4], where q is the number of classes, or 1 if they share the boxes.
        scores: [batch, n, classes], 0 to 1.
        iou_threshold: boxes that overlap a chosen one by more than this IoU, 0 to 1, are dropped;
            not by `soft`.
        score_threshold: boxes with a score up to this, 0 to 1, are not looked at.
        max_detections: most boxes per image.
        top_k: best boxes of each class that take part; all by default.
        sigma: with `soft`, the variance of the Gaussian that lowers the scores.
        attributes: values of the boxes, [batch, n, size] each.
        kernel: see `Kernel`.
    """
    method = ALIASES.get(method, method)
    if method not in METHODS:
        raise ValueError(f"no NMS called {method!r}; there are {', '.join([*METHODS, *ALIASES])}")
    if (sigma or 0.0) > 0.0:
        if METHODS[method] is class_agnostic:
            raise ValueError("soft NMS goes class by class: leave out sigma or class_agnostic")
        method = "soft"
    options: dict[str, Any] = {"iou_threshold": iou_threshold, "kernel": kernel}
    return METHODS[method](
        boxes,
        scores,
        score_threshold=score_threshold,
        max_detections=max_detections,
        top_k=top_k,
        attributes=attributes,
        **({"sigma": sigma} if method == "soft" else options),
    )


def per_class(
    boxes: Any,
    scores: Any,
    *,
    iou_threshold: float,
    score_threshold: float = 0.0,
    max_detections: int,
    top_k: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    kernel: Kernel | None = None,
) -> Detections:
    """A box drops overlapping ones of its own class. Arguments as in `suppress`."""
    boxes, scores = ops.cast(boxes, "float32"), _limit(ops.cast(scores, "float32"), top_k)
    settings: dict[str, Any] = {
        "iou_threshold": iou_threshold,
        "score_threshold": score_threshold,
        "max_detections": max_detections,
    }
    found = kernel(boxes, scores, **settings) if kernel else None
    if found is None:
        return _detections(boxes, attributes, *_choose(boxes, scores, **settings))
    chosen, classes, best, count = found
    if not attributes:
        return Detections(chosen, classes, best, count, {})
    indices = _locate(boxes, scores, chosen, classes, best)
    return _detections(boxes, attributes, indices, classes, best, count)


def class_agnostic(boxes: Any, scores: Any, **settings: Any) -> Detections:
    """A box has its best class only, and drops overlapping ones of all classes.

    Arguments as in `suppress`; the classes share the boxes.
    """
    if boxes.shape[2] != 1:
        raise ValueError(f"class agnostic NMS takes one box for all classes, got {boxes.shape[2]}")
    classes = ops.expand_dims(ops.argmax(scores, axis=-1), -1)
    attributes = dict(settings.pop("attributes", None) or {})
    found = per_class(
        boxes,
        ops.max(scores, axis=-1, keepdims=True),
        attributes={**attributes, _CLASS: ops.cast(classes, "int32")},
        **settings,
    )
    return found._replace(
        classes=found.attributes[_CLASS][..., 0],
        attributes={name: found.attributes[name] for name in attributes},
    )


def soft(
    boxes: Any,
    scores: Any,
    *,
    sigma: float,
    score_threshold: float = 0.0,
    max_detections: int,
    top_k: int | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Detections:
    """A box lowers the scores of overlapping ones of its own class (Bodla et al. 2017).

    By the factor exp(-IoU^2 / (2 sigma)). No IoU is a reason to drop a box, only a score that has
    become too low. Arguments as in `suppress`.
    """
    if not sigma or sigma <= 0.0:
        raise ValueError(f"soft NMS lowers scores by a Gaussian: sigma must be > 0, got {sigma}")
    boxes, scores = ops.cast(boxes, "float32"), _limit(ops.cast(scores, "float32"), top_k)
    found = _choose(
        boxes,
        scores,
        iou_threshold=float("inf"),
        score_threshold=score_threshold,
        max_detections=max_detections,
        sigma=sigma,
    )
    return _detections(boxes, attributes, *found)


def survivors(boxes: Any, iou_threshold: float) -> Any:
    """Which of many boxes no better one drops, where most of them may stay.

    It compares all boxes with each other, and then, all at once, drops those that overlap a better
    one which is still there, until nothing changes. That takes as many rounds as the longest chain
    of boxes of which each depends on the next, not as there are boxes.

    Args:
        boxes: [batch, n, 4], best first.
        iou_threshold: boxes that overlap a better one by more than this IoU, 0 to 1, are dropped.

    Returns:
        bool [batch, n].
    """
    boxes = ops.cast(boxes, "float32")
    n = boxes.shape[1]
    numbers = ops.arange(n, dtype="int32")
    is_better = ops.expand_dims(numbers, 0) < ops.expand_dims(numbers, 1)
    drops = ops.cast((iou.iou(boxes, boxes) > iou_threshold) & is_better, "float32")

    def changes(stays: Any, is_new: Any) -> Any:
        del stays
        return is_new

    def drop(stays: Any, is_new: Any) -> tuple[Any, Any]:
        del is_new
        dropped = ops.matmul(drops, ops.expand_dims(stays, -1))[..., 0]
        new = ops.cast(dropped < 0.5, "float32")
        return new, ops.any(new != stays)

    start = (ops.ones_like(boxes[..., 0]), ops.any(ops.ones((1,), "bool")))
    # Each round settles one more box at least.
    stays, _ = ops.while_loop(changes, drop, start, maximum_iterations=n)
    return stays > 0.5


METHODS: dict[str, Callable[..., Detections]] = {
    "per_class": per_class,
    "class_agnostic": class_agnostic,
    "soft": soft,
}
"""What suppresses what."""

_CLASS = "class of class_agnostic"


def _limit(scores: Any, top_k: int | None) -> Any:
    """Scores [batch, n, classes] without those that are not among the best `top_k` of a class."""
    n = scores.shape[1]
    if top_k is None or (n is not None and n <= top_k):
        return scores
    if n is None:  # an image size that is known when it comes
        top_k = ops.minimum(top_k, ops.shape(scores)[1])
    best = ops.top_k(ops.transpose(scores, (0, 2, 1)), top_k)[0]
    return ops.where(scores >= ops.expand_dims(best[..., -1], 1), scores, _GONE)


def _choose(
    boxes: Any,
    scores: Any,
    *,
    iou_threshold: float,
    score_threshold: float,
    max_detections: int,
    sigma: float | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Indices, classes, scores [batch, max_detections] and count [batch] of the chosen boxes."""
    (batch, n, classes), q = ops.shape(scores), boxes.shape[2]
    threshold = max(score_threshold, 0.0)
    # One row per image and class: a step looks at one row of each image and writes only that.
    rows = ops.where(scores > threshold, scores, _GONE)
    rows = ops.reshape(ops.transpose(rows, (0, 2, 1)), (-1, n))
    boxes = ops.reshape(ops.transpose(boxes, (0, 2, 1, 3)), (-1, n, 4))
    images = ops.arange(batch, dtype="int32")
    numbers, columns = ops.arange(n, dtype="int32"), ops.arange(classes, dtype="int32")
    slots = ops.arange(max_detections, dtype="int32")

    def more(step: Any, rows: Any, best: Any, *_: Any) -> Any:
        return (step < max_detections) & ops.any(best > threshold)

    def choose(step: Any, rows: Any, best: Any, *chosen: Any) -> tuple[Any, ...]:
        column = ops.cast(ops.argmax(best, axis=-1), "int32")
        number = images * classes + column
        row = ops.take(rows, number, axis=0)
        index = ops.cast(ops.argmax(row, axis=-1), "int32")
        candidates = boxes if q == 1 else ops.take(boxes, images * q + column, axis=0)
        box = box_ops.take(candidates, ops.expand_dims(index, -1))
        overlap = iou.iou(box, candidates)[:, 0]
        dropped = (overlap > iou_threshold) | (numbers == ops.expand_dims(index, -1))
        values = index, column, ops.max(best, axis=-1)
        if sigma:
            row = row * ops.exp(-0.5 / sigma * ops.square(overlap))
            dropped = dropped | (row <= threshold)
        row = ops.where(dropped, _GONE, row)
        rows = ops.scatter_update(rows, ops.expand_dims(number, -1), row)
        here = columns == ops.expand_dims(column, -1)
        best = ops.where(here, ops.max(row, axis=-1, keepdims=True), best)
        chosen = tuple(
            ops.where(slots == step, ops.expand_dims(value, -1), old)
            for value, old in zip(values, chosen, strict=True)
        )
        return step + 1, rows, best, *chosen

    best = ops.reshape(ops.max(rows, axis=-1), (-1, classes))
    none = ops.zeros((batch, max_detections), "int32")
    start = (ops.zeros((), "int32"), rows, best, none, none, ops.cast(none, "float32"))
    _, _, _, indices, found, values = ops.while_loop(
        more, choose, start, maximum_iterations=max_detections
    )
    is_found = values > threshold
    indices, found = ops.where(is_found, indices, 0), ops.where(is_found, found, 0)
    count = ops.sum(ops.cast(is_found, "int32"), axis=-1)
    return indices, found, ops.where(is_found, values, 0.0), count


def _locate(boxes: Any, scores: Any, chosen: Any, classes: Any, best: Any) -> Any:
    """The indices [batch, k] that chosen boxes [batch, k, 4] came from: the first that is equal."""
    columns = ops.transpose(scores, (0, 2, 1))
    equal = box_ops.take(columns, classes) == ops.expand_dims(best, -1)
    boxes = ops.transpose(boxes, (0, 2, 1, 3))
    rows = classes if boxes.shape[1] > 1 else ops.zeros_like(classes)
    boxes = box_ops.take(boxes, rows)
    equal = equal & ops.all(boxes == ops.expand_dims(chosen, -2), axis=-1)
    return ops.cast(ops.argmax(ops.cast(equal, "int32"), axis=-1), "int32")


def _detections(
    boxes: Any,
    attributes: Mapping[str, Any] | None,
    indices: Any,
    classes: Any,
    scores: Any,
    count: Any,
) -> Detections:
    n, q = ops.shape(boxes)[1:3]
    flat = ops.reshape(boxes, (-1, n * q, 4))
    places = indices * q + (classes if q > 1 else 0)
    is_found = ops.arange(scores.shape[1], dtype="int32") < ops.expand_dims(count, -1)

    def pick(values: Any, places: Any) -> Any:
        values = box_ops.take(values, places)
        return ops.where(ops.expand_dims(is_found, -1), values, ops.zeros_like(values))

    picked = {name: pick(values, indices) for name, values in (attributes or {}).items()}
    return Detections(pick(flat, places), classes, scores, count, picked)
