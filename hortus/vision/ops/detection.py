"""From the raw output of a detector to boxes, classes and scores."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras import ops

from hortus.vision.ops import box_coder, nms
from hortus.vision.ops import boxes as box_ops

# Anchors per image that suppression is first tried with.
_FIRST_TRY = 4096


def flatten_levels(levels: Mapping[str, Any], size: int) -> Any:
    """Joins levels [batch, height, width, k * size] to [batch, n, size], finest level first."""
    names = sorted(levels, key=int)
    return ops.concatenate(
        [_as_rows(levels[name], size) for name in names],
        axis=1,
    )


def decode_multilevel(
    raw_boxes: Mapping[str, Any],
    raw_scores: Mapping[str, Any],
    anchors: Mapping[str, Any],
    image_size: Any,
    *,
    num_classes: int,
    box_coder_weights: Sequence[float] | None = None,
) -> tuple[Any, Any]:
    """All boxes of a one-stage detector and their scores.

    Args:
        raw_boxes: codes per level, [batch, height, width, anchors * 4].
        raw_scores: logits per level, [batch, height, width, anchors * num_classes].
        anchors: boxes per level, [height, width, anchors * 4], or the same for each image.
        image_size: (height, width) or [batch, 2], in pixels; boxes are cut there.
        num_classes: classes, with the background, class 0.
        box_coder_weights: see `box_coder.decode`.

    Returns:
        Boxes [batch, n, 1, 4] in pixels and scores [batch, n, num_classes - 1], 0 to 1.
    """
    codes = flatten_levels(raw_boxes, 4)
    boxes = _decode(codes, _flatten_anchors(anchors), image_size, box_coder_weights)
    logits = flatten_levels(raw_scores, num_classes)[..., 1:]
    return ops.expand_dims(boxes, 2), ops.sigmoid(ops.cast(logits, "float32"))


def detect_multilevel(
    raw_boxes: Mapping[str, Any],
    raw_scores: Mapping[str, Any],
    anchors: Mapping[str, Any],
    image_size: Any,
    *,
    num_classes: int,
    raw_attributes: Mapping[str, Mapping[str, Any]] | None = None,
    method: str = "per_class",
    box_coder_weights: Sequence[float] | None = None,
    score_threshold: float = 0.05,
    max_detections: int = 100,
    **settings: Any,
) -> nms.Detections:
    """What a one-stage detector found in each image.

    Scores and boxes are computed for the few thousand best anchors. If more of them could have
    mattered, because too few detections came out, all are computed: the result is that of
    `decode_multilevel` and `nms.suppress`.

    Args:
        raw_boxes: see `decode_multilevel`.
        raw_scores: see `decode_multilevel`.
        anchors: see `decode_multilevel`.
        image_size: see `decode_multilevel`.
        num_classes: see `decode_multilevel`.
        raw_attributes: by name, [batch, height, width, anchors * size] per level.
        method: see `nms.suppress`.
        box_coder_weights: see `box_coder.decode`.
        score_threshold: see `nms.suppress`.
        max_detections: see `nms.suppress`.
        **settings: see `nms.suppress`.

    Returns:
        The detections; their classes count from 1, padding has class 0.
    """
    values = {
        "logits": flatten_levels(raw_scores, num_classes),
        "codes": flatten_levels(raw_boxes, 4),
        "anchors": _flatten_anchors(anchors),
    }
    n = values["logits"].shape[1]
    for name, levels in (raw_attributes or {}).items():
        size = sum(x.shape[1] * x.shape[2] * x.shape[3] for x in levels.values()) // n
        values[f"attribute {name}"] = flatten_levels(levels, size)

    def find(values: Mapping[str, Any]) -> nms.Detections:
        boxes = _decode(values["codes"], values["anchors"], image_size, box_coder_weights)
        return nms.suppress(
            method,
            ops.expand_dims(boxes, 2),
            ops.sigmoid(ops.cast(values["logits"][..., 1:], "float32")),
            score_threshold=score_threshold,
            max_detections=max_detections,
            attributes={name: values[f"attribute {name}"] for name in (raw_attributes or {})},
            **settings,
        )

    found = _find_among_best(find, values, score_threshold, max_detections)
    return found._replace(classes=_from_one(found))


def detect(
    raw_boxes: Any,
    raw_scores: Any,
    anchor_boxes: Any,
    image_size: Any,
    *,
    method: str = "per_class",
    box_coder_weights: Sequence[float] | None = None,
    use_sigmoid: bool = False,
    **settings: Any,
) -> nms.Detections:
    """What the second stage of a two-stage detector found in each image.

    Args:
        raw_boxes: see `decode`.
        raw_scores: see `decode`.
        anchor_boxes: see `decode`.
        image_size: see `decode`.
        method: see `nms.suppress`.
        box_coder_weights: see `decode`.
        use_sigmoid: see `decode`.
        **settings: see `nms.suppress`.

    Returns:
        The detections; their classes count from 1, padding has class 0.
    """
    boxes, scores = decode(
        raw_boxes,
        raw_scores,
        anchor_boxes,
        image_size,
        box_coder_weights=box_coder_weights,
        use_sigmoid=use_sigmoid,
    )
    found = nms.suppress(method, boxes, scores, **settings)
    return found._replace(classes=_from_one(found))


def decode(
    raw_boxes: Any,
    raw_scores: Any,
    anchor_boxes: Any,
    image_size: Any,
    *,
    box_coder_weights: Sequence[float] | None = None,
    use_sigmoid: bool = False,
) -> tuple[Any, Any]:
    """All boxes of the second stage and their scores.

    Args:
        raw_boxes: codes [batch, n, classes * 4], or [batch, n, 4] shared by the classes.
        raw_scores: logits [batch, n, classes], class 0 is the background.
        anchor_boxes: the proposals that the codes refer to, [batch, n, 4]. Those that are 0
            only fill up: they score 0.
        image_size: (height, width) or [batch, 2], in pixels; boxes are cut there.
        box_coder_weights: see `box_coder.decode`.
        use_sigmoid: one sigmoid per class instead of a softmax over all.

    Returns:
        Boxes [batch, n, classes - 1 or 1, 4] in pixels and scores [batch, n, classes - 1], 0 to 1.
    """
    raw_scores = ops.cast(raw_scores, "float32")
    scores = ops.sigmoid(raw_scores) if use_sigmoid else ops.softmax(raw_scores, axis=-1)
    # Empty boxes overlap nothing: none of them would suppress the others.
    is_region = ops.any(ops.convert_to_tensor(anchor_boxes) != 0.0, axis=-1)
    scores = ops.where(ops.expand_dims(is_region, -1), scores, 0.0)
    n, coordinates = raw_boxes.shape[1:]
    codes = ops.reshape(raw_boxes, (-1, n, coordinates // 4, 4))
    if coordinates > 4:
        codes = codes[:, :, 1:]
    anchors = ops.expand_dims(anchor_boxes, 2)
    return _decode(codes, anchors, image_size, box_coder_weights), scores[..., 1:]


def _find_among_best(
    find: Callable[[Mapping[str, Any]], nms.Detections],
    values: Mapping[str, Any],
    score_threshold: float,
    max_detections: int,
) -> nms.Detections:
    """`find(values)`, tried first with the anchors that have the best logits."""
    n = values["logits"].shape[1]
    if n is None or n <= 2 * _FIRST_TRY:
        return find(values)
    best = ops.cast(ops.max(values["logits"][..., 1:], axis=-1), "float32")
    ranked, index = ops.top_k(best, _FIRST_TRY + 1)
    index = index[:, :-1]
    anchors = values["anchors"]
    chosen = {
        name: box_ops.take(value, index) for name, value in values.items() if name != "anchors"
    }
    per_image = len(anchors.shape) == 3
    chosen["anchors"] = (
        box_ops.take(anchors, index) if per_image else ops.take(anchors, index, axis=0)
    )
    found = find(chosen)
    # The other anchors come too late if enough was found before the turn of the best of them; they
    # do not count if its score is too low.
    bound = ops.sigmoid(ranked[:, -1])
    is_full = (found.count == max_detections) & (found.scores[:, -1] >= bound)
    is_all = ops.all(is_full | (bound <= score_threshold))
    return nms.Detections(*ops.cond(is_all, lambda: tuple(found), lambda: tuple(find(values))))


def _decode(codes: Any, anchors: Any, image_size: Any, weights: Sequence[float] | None) -> Any:
    return box_ops.clip(box_coder.decode(codes, anchors, weights), image_size)


def _flatten_anchors(anchors: Mapping[str, Any]) -> Any:
    """[n, 4] or, where images have their own, [batch, n, 4]."""
    if len(next(iter(anchors.values())).shape) == 4:
        return flatten_levels(anchors, 4)
    return ops.concatenate(
        [ops.reshape(anchors[name], (-1, 4)) for name in sorted(anchors, key=int)], axis=0
    )


def _as_rows(level: Any, size: int) -> Any:
    batch, height, width, values = ops.shape(level)
    return ops.reshape(level, (batch, height * width * (values // size), size))


def _from_one(found: nms.Detections) -> Any:
    """Classes that count from 1: the scores have no column for the background."""
    slots = ops.arange(found.classes.shape[1], dtype="int32")
    return ops.where(slots < ops.expand_dims(found.count, -1), found.classes + 1, 0)
