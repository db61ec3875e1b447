"""What each anchor has to predict."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keras import ops

from hortus.vision.ops import box_coder, iou, matcher, sampling
from hortus.vision.ops import boxes as box_ops


class AnchorLabels(NamedTuple):
    """Targets and weights of a batch's anchors; `anchors.split_levels` cuts them into levels."""

    classes: Any
    """int32 [batch, n]; -1 for background."""
    boxes: Any
    """Codes of the matched boxes, float32 [batch, n, 4]; of the box 0, 0, 0, 0 without a match."""
    attributes: dict[str, Any]
    """float32 [batch, n, size] each; 0 without a match."""
    class_weights: Any
    """float32 [batch, n]; 0 where an anchor is neither an object nor background."""
    box_weights: Any
    """float32 [batch, n]; 0 without a match. Attributes share them."""


@dataclasses.dataclass(frozen=True)
class AnchorLabeler:
    """Labels anchors for a one-stage detector.

    Every object is matched by at least one anchor, the one that overlaps it most.

    Args:
        match_threshold: anchors that overlap an object by at least this IoU, 0 to 1, are that
            object.
        unmatched_threshold: those that overlap none by this IoU are background; those in between
            do not count.
        box_coder_weights: see `box_coder.encode`.
    """

    match_threshold: float = 0.5
    unmatched_threshold: float = 0.5
    box_coder_weights: Sequence[float] | None = None

    def __call__(
        self,
        anchors: Any,
        gt_boxes: Any,
        gt_classes: Any,
        gt_attributes: Mapping[str, Any] | None = None,
        gt_weights: Any = None,
    ) -> AnchorLabels:
        """Labels the anchors of each image.

        Args:
            anchors: [n, 4].
            gt_boxes: [batch, m, 4], padded with -1.
            gt_classes: integers [batch, m].
            gt_attributes: [batch, m, size] each.
            gt_weights: [batch, m]; an object's weight counts for all anchors that it is the best
                match of, background too.
        """
        anchors = ops.cast(anchors, "float32")
        thresholds = (self.unmatched_threshold, self.match_threshold)
        match = matcher.match_overlaps(anchors, gt_boxes, thresholds, force=True)
        matched = match.indicators == matcher.MATCHED
        weights = ops.ones_like(match.indicators, dtype="float32")
        if gt_weights is not None:
            weights = box_ops.take(ops.cast(gt_weights, "float32"), match.indices)
        classes = box_ops.take(ops.cast(gt_classes, "int32"), match.indices)
        boxes = _of_matched(gt_boxes, match.indices, matched)
        return AnchorLabels(
            classes=ops.where(matched, classes, -1),
            boxes=box_coder.encode(boxes, anchors, self.box_coder_weights),
            attributes={
                name: _of_matched(values, match.indices, matched)
                for name, values in (gt_attributes or {}).items()
            },
            class_weights=ops.where(match.indicators == matcher.IGNORED, 0.0, weights),
            box_weights=ops.where(matched, weights, 0.0),
        )


class ProposalLabels(NamedTuple):
    """Targets of a batch's anchors; `anchors.split_levels` cuts them into levels."""

    scores: Any
    """1 for an object, 0 for background, -1 for anchors that do not count; int32 [batch, n]."""
    boxes: Any
    """Codes of the boxes of those that are objects, float32 [batch, n, 4]; 0 otherwise."""


@dataclasses.dataclass(frozen=True)
class ProposalLabeler:
    """Labels anchors for the proposals of a two-stage detector, and chooses some to learn from.

    Args:
        match_threshold: anchors that overlap an object by at least this IoU, 0 to 1, are objects,
            and the best one of each object.
        unmatched_threshold: those that overlap none by this IoU are background.
        batch_size: anchors per image to learn from.
        foreground_fraction: largest share of objects among them, 0 to 1.
    """

    match_threshold: float = 0.7
    unmatched_threshold: float = 0.3
    batch_size: int = 256
    foreground_fraction: float = 0.5

    def __call__(
        self,
        anchors: Any,
        gt_boxes: Any,
        seed: sampling.Seed = None,
        is_crowd: Any = None,
    ) -> ProposalLabels:
        """Labels the anchors of each image by its objects.

        Args:
            anchors: [n, 4].
            gt_boxes: [batch, m, 4], padded with -1.
            seed: of the choice, see `sampling.Seed`.
            is_crowd: which of the objects mark many at once, bool [batch, m]: no anchor is that
                object, but none that it covers by half is background.
        """
        anchors = ops.cast(anchors, "float32")
        crowds = None
        if is_crowd is not None:
            is_crowd = ops.expand_dims(ops.cast(is_crowd, "bool"), -1)
            gt_boxes = ops.cast(gt_boxes, "float32")
            crowds = ops.where(is_crowd, gt_boxes, box_ops.PADDING)
            gt_boxes = ops.where(is_crowd, box_ops.PADDING, gt_boxes)
        thresholds = (self.unmatched_threshold, self.match_threshold)
        match = matcher.match_overlaps(anchors, gt_boxes, thresholds, (0, -1, 1), force=True)
        scores = match.indicators
        if crowds is not None:
            share = ops.max(iou.intersection_over_area(anchors, crowds), axis=-1)
            scores = ops.where((scores == 0) & (share >= 0.5), -1, scores)
        chosen = sampling.balanced_mask(
            scores == 1, scores == 0, self.batch_size, self.foreground_fraction, seed
        )
        codes = box_coder.encode(
            box_ops.take(ops.cast(gt_boxes, "float32"), match.indices), anchors
        )
        return ProposalLabels(
            ops.where(chosen, scores, -1), ops.where(ops.expand_dims(scores == 1, -1), codes, 0.0)
        )


def _of_matched(values: Any, indices: Any, matched: Any) -> Any:
    """Rows of `values` [batch, m, k] at `indices` [batch, n], 0 where nothing is matched."""
    rows = box_ops.take(ops.cast(values, "float32"), indices)
    return ops.where(ops.expand_dims(matched, -1), rows, 0.0)
