"""How far the outputs of an export are from those of its model, for one image."""

from collections.abc import Mapping

import numpy as np

LIMIT = 1e-4
"""What an export may differ by, see `serving.parity.Parity`."""


def difference(expected: np.ndarray, found: np.ndarray) -> float:
    """The largest difference, see `serving.parity.Parity`.

    Infinite where shapes differ or something is NaN.
    """
    if expected.shape != found.shape:
        return float("inf")
    if not expected.size:
        return 0.0
    expected, found = expected.astype(np.float64), found.astype(np.float64)
    largest = float(np.max(np.abs(expected - found)))
    return largest / max(1.0, float(np.max(np.abs(expected)))) if largest >= 0 else float("inf")


def detection_differences(
    expected: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """How far detections are apart; those whose scores are equal may come in any order.

    Args:
        expected: `detection_boxes` [n, 4], `detection_scores`, `detection_classes` [n] and
            `num_detections` of the model, perhaps `detection_masks` [n, h, w].
        found: the same of the export.
    """
    count, other = (int(np.ravel(each["num_detections"])[0]) for each in (expected, found))
    if count != other:
        return {"num_detections": float(abs(count - other))}
    boxes, boxes2 = (np.asarray(e["detection_boxes"][:count], float) for e in (expected, found))
    scores, scores2 = (np.asarray(e["detection_scores"][:count], float) for e in (expected, found))
    classes, classes2 = (np.asarray(e["detection_classes"][:count], int) for e in (expected, found))
    side = max(1.0, float(np.abs(boxes).max(initial=0.0)))
    masks, masks2 = (each.get("detection_masks") for each in (expected, found))
    box_difference = score_difference = mask_difference = 0.0
    free = np.ones(count, bool)
    # Of detections that are as good as the last one, the export may have kept another.
    last = scores.min(initial=np.inf) + LIMIT if count == len(expected["detection_scores"]) else 0
    for place, (box, score, number) in enumerate(zip(boxes, scores, classes, strict=True)):
        apart = np.abs(boxes2 - box).max(axis=1, initial=0.0) / side + np.abs(scores2 - score)
        apart[(classes2 != number) | ~free] = np.inf
        nearest = int(np.argmin(apart))
        if apart[nearest] > LIMIT * 2 and score <= last:
            continue
        free[nearest] = False
        box_difference = max(box_difference, np.abs(boxes2[nearest] - box).max() / side)
        score_difference = max(score_difference, abs(scores2[nearest] - score))
        if not np.isfinite(apart[nearest]):
            box_difference = float("inf")
        if masks is not None and masks2 is not None:
            mask_difference = max(mask_difference, difference(masks[place], masks2[nearest]))
    differences = {
        "detection_boxes": float(box_difference),
        "detection_scores": float(score_difference),
    }
    if masks is not None:
        differences["detection_masks"] = float("inf") if masks2 is None else mask_difference
    return differences
