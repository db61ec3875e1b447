"""Which object each box belongs to."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras import ops

from hortus.vision.ops import boxes as box_ops
from hortus.vision.ops import iou

IGNORED = -2
"""Indicator of a box that is too close to an object for background, too far to be it."""
BACKGROUND = -1
"""Indicator of a box that belongs to no object."""
MATCHED = 1
"""Indicator of a box that belongs to an object."""

# Objects that are compared with all boxes at once.
_CHUNK = 16


class Match(NamedTuple):
    """The best object of each box, and what to make of it."""

    indices: Any
    """The most similar object, int32 [..., n]."""
    indicators: Any
    """The indicator of the interval that its similarity falls into, int32 [..., n]."""


def match(
    similarity: Any,
    thresholds: Sequence[float],
    indicators: Sequence[int] = (BACKGROUND, IGNORED, MATCHED),
    *,
    force: bool = False,
) -> Match:
    """Gives each box its most similar object.

    Args:
        similarity: [..., n, m] of n boxes to m objects; not above 0 for objects that are padding.
        thresholds: bounds between the intervals of similarity, rising. A bound belongs to the
            interval above it.
        indicators: one per interval, so one more than thresholds; the last one is a match.
        force: also give each object the box that is most similar to it, whatever the similarity.
            Where two objects have the same box, the first one gets it.
    """
    indices = ops.cast(ops.argmax(similarity, axis=-1), "int32")
    found = _classify(ops.max(similarity, axis=-1), thresholds, indicators)
    if force:
        indices, found = _force(indices, found, _claims(similarity), indicators[-1])
    return Match(indices, found)


def match_overlaps(
    boxes: Any,
    objects: Any,
    thresholds: Sequence[float],
    indicators: Sequence[int] = (BACKGROUND, IGNORED, MATCHED),
    *,
    force: bool = False,
) -> Match:
    """What `match` gives for the IoU of boxes and objects, without ever holding all of them.

    Objects are taken a few at a time, and padding at the end is not looked at: of the many objects
    that an image may have, most have few.

    Args:
        boxes: [n, 4], the same for all images.
        objects: [batch, m, 4], padded with -1.
        thresholds: see `match`.
        indicators: see `match`.
        force: see `match`.
    """
    boxes, objects = ops.cast(boxes, "float32"), ops.cast(objects, "float32")
    n, m = boxes.shape[0], objects.shape[1]
    numbers = ops.arange(1, m + 1, dtype="int32")
    count = ops.max(ops.where(box_ops.is_padding(objects), 0, numbers), initial=0)
    chunk = min(_CHUNK, m)
    chunks = -(-m // chunk)
    objects = ops.pad(objects, ((0, 0), (0, chunks * chunk - m), (0, 0)), constant_values=-1.0)
    objects = ops.moveaxis(ops.reshape(objects, (-1, chunks, chunk, 4)), 1, 0)

    def more(done: Any, *_: Any) -> Any:
        return done * chunk < count

    def compare(done: Any, best: Any, indices: Any, claims: Any) -> tuple[Any, ...]:
        overlaps = iou.iou(boxes, ops.take(objects, done, axis=0))
        highest = ops.max(overlaps, axis=-1)
        offset = done * chunk
        where = ops.cast(ops.argmax(overlaps, axis=-1), "int32") + offset
        # Only what is better: of equals the first one counts.
        indices = ops.where(highest > best, where, indices)
        if force:
            new = _claims(overlaps)
            claims = ops.where((claims < 0) & (new >= 0), new + offset, claims)
        return done + 1, ops.maximum(best, highest), indices, claims

    none = ops.zeros((ops.shape(objects)[1], n), "int32")
    start = (ops.zeros((), "int32"), ops.cast(none, "float32"), none, none - 1)
    _, best, indices, claims = ops.while_loop(more, compare, start, maximum_iterations=chunks)
    found = _classify(best, thresholds, indicators)
    if force:
        indices, found = _force(indices, found, claims, indicators[-1])
    return Match(indices, found)


def _classify(best: Any, thresholds: Sequence[float], indicators: Sequence[int]) -> Any:
    """The indicator of each similarity."""
    if len(indicators) != len(thresholds) + 1 or list(thresholds) != sorted(thresholds):
        raise ValueError(
            "expected rising thresholds and one more indicator, "
            f"got {list(thresholds)} and {list(indicators)}"
        )
    found = ops.full_like(best, indicators[0], dtype="int32")
    for threshold, indicator in zip(thresholds, indicators[1:], strict=True):
        found = ops.where(best >= threshold, indicator, found)
    return found


def _claims(similarity: Any) -> Any:
    """The first object whose best box each box is, int32 [..., n]; -1 where it is no object's."""
    n, m = similarity.shape[-2:]
    best = ops.cast(ops.argmax(similarity, axis=-2, keepdims=True), "int32")
    best = ops.where(ops.max(similarity, axis=-2, keepdims=True) > 0, best, -1)
    claimed = ops.expand_dims(ops.arange(n, dtype="int32"), -1) == best
    first = ops.min(ops.where(claimed, ops.arange(m, dtype="int32"), m), axis=-1)
    return ops.where(first < m, first, -1)


def _force(indices: Any, found: Any, claims: Any, matched: int) -> tuple[Any, Any]:
    return ops.where(claims >= 0, claims, indices), ops.where(claims >= 0, matched, found)


class BoxMatch(NamedTuple):
    """The object that each box overlaps most; zeros where it overlaps none."""

    boxes: Any
    """float32 [batch, n, 4]."""
    classes: Any
    """[batch, n], of the type of the objects' classes."""
    indices: Any
    """int32 [batch, n]; -1 where there is none."""
    ious: Any
    """float32 [batch, n]."""


def match_boxes(boxes: Any, gt_boxes: Any, gt_classes: Any) -> BoxMatch:
    """Finds the object that each box overlaps most.

    Args:
        boxes: [batch, n, 4].
        gt_boxes: [batch, m, 4], padded with -1.
        gt_classes: [batch, m].
    """
    overlaps = iou.padded_iou(boxes, gt_boxes)
    indices = ops.cast(ops.argmax(overlaps, axis=-1), "int32")
    ious = ops.max(overlaps, axis=-1)
    found = ious > 0
    matched_boxes = box_ops.take(ops.cast(gt_boxes, "float32"), indices)
    classes = box_ops.take(ops.convert_to_tensor(gt_classes), indices)
    return BoxMatch(
        ops.where(ops.expand_dims(found, -1), matched_boxes, 0.0),
        ops.where(found, classes, ops.zeros_like(classes)),
        ops.where(found, indices, -1),
        ious,
    )
