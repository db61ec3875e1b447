"""Which regions a mask head learns from, and the masks it has to draw, as a layer."""

from typing import Any, NamedTuple

import keras
from keras import ops

from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.ops import boxes as box_ops
from hortus.vision.ops import masks as mask_ops


class SampledMasks(NamedTuple):
    """Regions of each image, and the mask of the object that each of them shows."""

    boxes: Any
    """float32 (batch, n, 4), in pixels."""
    classes: Any
    """int32 (batch, n); 0 for regions that show no object, which fill up."""
    masks: Any
    """What the region sees of the mask, 0 or 1, float32 (batch, n, size, size)."""


@keras.saving.register_keras_serializable(package="Hortus")
class MaskSampler(Configurable, keras.layers.Layer):
    """Takes regions with objects, the first ones, and crops the objects' masks to them.

    What it returns has no gradient.

    Args:
        mask_target_size: side of the masks to draw.
        num_sampled_masks: regions per image.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(self, mask_target_size: int, num_sampled_masks: int, **kwargs: Any):
        super().__init__(**{"dtype": "float32", "autocast": False, **kwargs})
        self.mask_target_size = mask_target_size
        self.num_sampled_masks = num_sampled_masks
        self.built = True

    def call(
        self,
        candidate_rois: Any,
        candidate_gt_boxes: Any,
        candidate_gt_classes: Any,
        candidate_gt_indices: Any,
        gt_masks: Any,
    ) -> SampledMasks:
        """Chooses regions.

        Args:
            candidate_rois: (batch, regions, 4), in pixels.
            candidate_gt_boxes: of the object that each region shows, (batch, regions, 4), in
                pixels.
            candidate_gt_classes: of these objects, (batch, regions); 0 and less show none.
            candidate_gt_indices: places of these objects in `gt_masks`, (batch, regions).
            gt_masks: (batch, objects, h, w), 0 to 1, of any type; each over
                the whole of its object's box.
        """
        classes = ops.cast(candidate_gt_classes, "int32")
        count = min(self.num_sampled_masks, classes.shape[1])
        is_object = ops.cast(classes > 0, "float32")
        index = ops.top_k(is_object, count)[1]  # of equals the first ones
        boxes, gt_boxes = (
            box_ops.take(ops.cast(values, "float32"), index)
            for values in (candidate_rois, candidate_gt_boxes)
        )
        places = ops.maximum(box_ops.take(candidate_gt_indices, index), 0)
        masks = ops.cast(box_ops.take(gt_masks, places), "float32")
        # Values lie in the middle of their cells, where `masks.paste` and evaluation see them.
        targets = mask_ops.crop(
            masks, gt_boxes, boxes, self.mask_target_size, sample_offset=0.5, mask_offset=0.5
        )
        targets = ops.cast(targets >= mask_ops.THRESHOLD, "float32")
        classes = ops.maximum(box_ops.take(classes, index), 0)
        return SampledMasks(*(ops.stop_gradient(x) for x in (boxes, classes, targets)))
