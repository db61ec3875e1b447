"""From scored anchors to the boxes that a second stage looks at (Ren et al. 2015)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from keras import ops

from hortus.vision.ops import box_coder, nms
from hortus.vision.ops import boxes as box_ops

# Score of a row that only fills up a level.
_NONE = -1.0


class Proposals(NamedTuple):
    """Where objects may be in each image of a batch, best first, padded with 0."""

    boxes: Any
    """float32 [batch, n, 4], in pixels."""
    scores: Any
    """float32 [batch, n], 0 to 1."""


def propose(
    raw_boxes: Mapping[str, Any],
    raw_scores: Mapping[str, Any],
    anchors: Mapping[str, Any],
    image_size: Any,
    *,
    pre_nms_top_k: int = 2000,
    score_threshold: float = 0.0,
    min_size: float = 0.0,
    iou_threshold: float = 0.7,
    num_proposals: int = 1000,
    kernel: nms.Kernel | None = None,
) -> Proposals:
    """The best boxes of all levels, after suppression level by level.

    Boxes are computed for the best anchors of each level only; for all of them where small boxes
    are to be left out, as their places in the order are then known too late.

    Args:
        raw_boxes: codes by level, [batch, height, width, anchors * 4].
        raw_scores: logits by level, [batch, height, width, anchors].
        anchors: boxes by level, [height, width, anchors * 4], or the same for each image.
        image_size: (height, width) or [batch, 2], in pixels; boxes are cut there.
        pre_nms_top_k: best anchors of a level that take part.
        score_threshold: anchors with a score up to this, 0 to 1, do not take part.
        min_size: boxes with a side up to this, in pixels, do not take part; 0 for any box.
        iou_threshold: boxes that overlap a better one of their level by more go; 0 to 1.
        num_proposals: most proposals per image.
        kernel: see `nms.Kernel`.

    Returns:
        `num_proposals` rows per image; fewer where there are not as many anchors.
    """
    levels = [
        _best(
            _rows(raw_boxes[name], 4),
            _rows(raw_scores[name], 1)[..., 0],
            _rows(anchors[name], 4),
            image_size,
            pre_nms_top_k,
            min_size,
        )
        for name in sorted(raw_scores, key=int)
    ]
    count = min(pre_nms_top_k, max(scores.shape[1] for _, scores in levels))
    boxes = ops.stack([_fill(boxes, count, 0.0) for boxes, _ in levels], axis=1)
    scores = ops.stack([_fill(scores, count, _NONE) for _, scores in levels], axis=1)
    boxes, scores = ops.reshape(boxes, (-1, count, 4)), ops.reshape(scores, (-1, count))
    scores = ops.where(scores > score_threshold, scores, _NONE)
    # Each level of each image is a row of its own: one suppression serves all.
    found = kernel and kernel(
        ops.expand_dims(boxes, 2),
        ops.expand_dims(scores, 2),
        iou_threshold=iou_threshold,
        score_threshold=max(score_threshold, 0.0),
        max_detections=min(count, num_proposals),
    )
    if found:
        boxes, _, scores, _ = found
    else:
        scores = ops.where(nms.survivors(boxes, iou_threshold), scores, _NONE)
    total = len(levels) * scores.shape[1]
    boxes, scores = ops.reshape(boxes, (-1, total, 4)), ops.reshape(scores, (-1, total))
    scores, boxes = box_ops.top_k(scores, num_proposals, boxes)
    is_box = scores > max(score_threshold, 0.0)
    return Proposals(
        ops.where(ops.expand_dims(is_box, -1), boxes, 0.0), ops.where(is_box, scores, 0.0)
    )


def _best(
    codes: Any, logits: Any, anchors: Any, image_size: Any, top_k: int, min_size: float
) -> tuple[Any, Any]:
    """Boxes [batch, k, 4] and scores [batch, k] of the best anchors of a level, best first."""
    scores = ops.sigmoid(ops.cast(logits, "float32"))
    per_image = len(anchors.shape) == 3
    n = scores.shape[1]
    if n is None:  # an image size that is known when it comes: there may be fewer than top_k
        codes, anchors = _extend(codes, top_k), _extend(anchors, top_k)
        scores = _extend(scores, top_k)
    k = top_k if n is None else min(top_k, n)
    if min_size > 0.0:
        boxes = box_ops.clip(box_coder.decode(codes, anchors), image_size)
        boxes, scores = box_ops.filter_by_size(boxes, scores, image_size, min_size)
        scores, index = ops.top_k(scores, k)
        return box_ops.take(boxes, index), scores
    scores, index = ops.top_k(scores, k)
    chosen = box_ops.take(anchors, index) if per_image else ops.take(anchors, index, axis=0)
    boxes = box_coder.decode(box_ops.take(codes, index), chosen)
    return box_ops.clip(boxes, image_size), scores


def _rows(level: Any, size: int) -> Any:
    """A level [..., height, width, k * size] as rows [..., height * width * k, size]."""
    *batch, height, width, values = ops.shape(level)
    return ops.reshape(level, (*batch, height * width * (values // size), size))


def _extend(values: Any, count: int) -> Any:
    """With `count` further rows of 0: [n, 4], [batch, n] or [batch, n, 4]."""
    axis = 0 if values.shape[-1] == 4 and len(values.shape) == 2 else 1
    rows = ops.zeros_like(ops.take(values, ops.zeros((count,), "int32"), axis=axis))
    return ops.concatenate([values, rows], axis=axis)


def _fill(values: Any, count: int, value: float) -> Any:
    """Rows [batch, n, ...], as many as `count` of them."""
    missing = count - values.shape[1]
    if not missing:
        return values
    pads = [(0, 0)] * len(values.shape)
    pads[1] = (0, missing)
    return ops.pad(values, pads, constant_values=value)
