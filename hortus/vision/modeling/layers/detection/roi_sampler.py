"""Which regions a second stage learns from, and what it has to say of them, as a layer."""

from typing import Any, NamedTuple

import keras
from keras import ops

from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.ops import boxes as box_ops
from hortus.vision.ops import iou, matcher, sampling

_COVERED = 0.5
"""Regions that a crowd covers by this share are no background: there may be an object of it."""


class SampledROIs(NamedTuple):
    """Regions of each image, and the object that each of them shows."""

    boxes: Any
    """float32 (batch, n, 4), in pixels."""
    gt_boxes: Any
    """Of the objects, float32 (batch, n, 4); 0 for background."""
    gt_classes: Any
    """Of the objects, int32 (batch, n); 0 for background."""
    gt_indices: Any
    """Places of the objects among those given, int32 (batch, n); -1 for background."""
    counts: Any
    """False for rows that fill up, and for regions that are neither object nor background; bool
    (batch, n)."""


@keras.saving.register_keras_serializable(package="Hortus")
class ROISampler(Configurable, keras.layers.Layer):
    """Tells objects from background among regions, and chooses some of both at random.

    What it returns has no gradient.

    Args:
        mix_gt_boxes: add the boxes of the objects to the regions.
        num_sampled_rois: regions per image.
        foreground_fraction: largest share of objects among them, 0 to 1.
        foreground_iou_threshold: regions that overlap an object by at least this IoU, 0 to 1, show
            it.
        background_iou_high_threshold: regions that overlap no object by this IoU, 0 to 1, are
            background.
        background_iou_low_threshold: regions that overlap every object by less than this IoU, 0 to
            1, are not even that.
        skip_subsampling: return all regions, as the further stages of a cascade want it.
        seed: of the random numbers; None for one drawn at random.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(
        self,
        mix_gt_boxes: bool = True,
        num_sampled_rois: int = 512,
        foreground_fraction: float = 0.25,
        foreground_iou_threshold: float = 0.5,
        background_iou_high_threshold: float = 0.5,
        background_iou_low_threshold: float = 0.0,
        skip_subsampling: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**{"dtype": "float32", "autocast": False, **kwargs})
        self.mix_gt_boxes = mix_gt_boxes
        self.num_sampled_rois = num_sampled_rois
        self.foreground_fraction = foreground_fraction
        self.foreground_iou_threshold = foreground_iou_threshold
        self.background_iou_high_threshold = background_iou_high_threshold
        self.background_iou_low_threshold = background_iou_low_threshold
        self.skip_subsampling = skip_subsampling
        self.seed = seed
        self.seed_generator = None if skip_subsampling else keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, boxes: Any, gt_boxes: Any, gt_classes: Any, is_crowd: Any = None) -> SampledROIs:
        """Chooses regions.

        Args:
            boxes: (batch, regions, 4), in pixels; rows without an area fill up.
            gt_boxes: of the objects, (batch, objects, 4), padded with -1.
            gt_classes: of the objects, (batch, objects), from 1.
            is_crowd: which rows of `gt_boxes` mark many objects at once, bool (batch, objects):
                no region has to show them, but none that they cover is background.
        """
        boxes = ops.cast(boxes, "float32")
        gt_boxes, gt_classes = ops.cast(gt_boxes, "float32"), ops.cast(gt_classes, "int32")
        covers = None
        if is_crowd is not None:
            is_crowd = ops.expand_dims(ops.cast(is_crowd, "bool"), -1)
            covers = ops.where(is_crowd, gt_boxes, box_ops.PADDING)
            gt_boxes = ops.where(is_crowd, box_ops.PADDING, gt_boxes)
        if self.mix_gt_boxes:
            boxes = ops.concatenate([boxes, gt_boxes], axis=1)

        match = matcher.match_boxes(boxes, gt_boxes, gt_classes)
        is_region = box_ops.is_nonempty(boxes)
        is_object = is_region & (match.ious >= self.foreground_iou_threshold)
        overlap = ops.maximum(match.ious, 0.0)  # -1 where there are no objects at all
        is_background = (
            is_region
            & ops.logical_not(is_object)
            & (overlap >= self.background_iou_low_threshold)
            & (overlap < self.background_iou_high_threshold)
        )
        if covers is not None:
            share = ops.max(iou.intersection_over_area(boxes, covers), axis=-1)
            is_background = is_background & (share < _COVERED)

        found = SampledROIs(
            boxes=boxes,
            gt_boxes=ops.where(ops.expand_dims(is_object, -1), match.boxes, 0.0),
            gt_classes=ops.where(is_object, match.classes, 0),
            gt_indices=ops.where(is_object, match.indices, -1),
            counts=is_object | is_background,
        )
        if not self.skip_subsampling:
            chosen = sampling.balanced(
                is_object,
                is_background,
                self.num_sampled_rois,
                self.foreground_fraction,
                self.seed_generator,
            )
            found = SampledROIs(*(box_ops.take(values, chosen.indices) for values in found))
            # What fills up may be an object that was chosen before.
            is_object = chosen.is_chosen & (found.gt_classes > 0)
            found = SampledROIs(
                boxes=found.boxes,
                gt_boxes=ops.where(ops.expand_dims(is_object, -1), found.gt_boxes, 0.0),
                gt_classes=ops.where(is_object, found.gt_classes, 0),
                gt_indices=ops.where(is_object, found.gt_indices, -1),
                counts=chosen.is_chosen,
            )
        return SampledROIs(*(ops.stop_gradient(values) for values in found))
