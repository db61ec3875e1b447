"""Decoded images with boxes and masks -> the images and labels of a batch."""

from typing import Any

import tensorflow as tf

from hortus.vision.configs import maskrcnn as configs
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.detection import mask_codes, parser
from hortus.vision.dataloaders.detection.view import View


class MaskParser(parser.Parser):
    """An encoded image and its objects with masks, see `decoder` -> (image, labels).

    Labels are those of `parser.Parser`, and with n = max_num_instances and s = mask_crop_size

        masks        uint8 [n, s, s], 0 or 1: what the object covers of its box in `boxes`, looked
                     up at the middles of s x s equal cells of that box; 0 in rows without object

    Masks follow the image through flips, crops, scaling and jitter. Only these samples are made of
    them, never a bitmap of the image, so that 100 objects take 1.3 MB at s = 112.

    The `groundtruths` of evaluation have the exact masks in the original image, as the run-lengths
    that pycocotools calls compressed (`counts` of `size` [height, width]), one after the other:

        mask_codes   uint8 [l], the characters of all of them; 0 where there are no more
        mask_lengths int32 [rows of groundtruths], characters of each; 0 in rows without object

    They are numbers, not text, so that both engines can carry them; `evaluation.coco_masks` takes
    them apart. `areas` are those of the data, or where it does not tell, pixels of the masks.

    Args:
      max_mask_bytes: l; more than that in an image is an error. 0 takes `parser.max_mask_bytes`.
      **arguments: of `parser.Parser`; `params.parser` says the side of masks.
    """

    params: configs.DataConfig

    def __init__(self, *, max_mask_bytes: int = 0, **arguments: Any):
        super().__init__(**arguments)
        self.max_mask_bytes = max_mask_bytes or self.params.parser.max_mask_bytes

    def _objects(self, example: dict[str, Any], size: tf.Tensor) -> dict[str, Any]:
        codes, areas = example["groundtruth_masks"], example["groundtruth_area"]
        covered, pixels = mask_codes.measure(codes)
        expected = tf.cast(tf.reduce_prod(size), tf.int64)
        fits = tf.reduce_all((pixels == expected) | (pixels == 0))
        text = "masks have not as many pixels as their image, which has"
        with tf.control_dependencies([tf.debugging.Assert(fits, [text, expected, "but", pixels])]):
            covered = tf.cast(covered, tf.float32)
        unknown = (areas < 0) & (covered > 0)
        example = {**example, "groundtruth_area": tf.where(unknown, covered, areas)}
        return {**super()._objects(example, size), "masks": codes}

    def _distort(
        self, image: tf.Tensor, boxes: tf.Tensor, view: View, seed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, View]:
        image, boxes, window = self._augmentation.distort_with_window(image, boxes, seed)
        return image, boxes, view.cropped(window)

    def _visible(self, objects: dict[str, Any], info: tf.Tensor) -> dict[str, Any]:
        # What the labels have no row for needs no mask.
        rows = tf.range(self.params.parser.max_num_instances)
        visible = super()._visible(objects, info)
        return parser.gather_objects(visible, rows[: tf.shape(visible["boxes"])[0]])

    def _labels(
        self, objects: dict[str, Any], info: tf.Tensor, source_id: tf.Tensor, view: View
    ) -> dict[str, Any]:
        objects = self._visible(objects, info)
        labels = self._padded(objects, info, source_id)
        side = self.params.parser.mask_crop_size
        masks = sample_boxes(objects["masks"], objects["boxes"], view, info, side)
        size = self.params.parser.max_num_instances
        return {**labels, "masks": preprocess.clip_or_pad_to_fixed_size(masks, size)}

    def _groundtruths(
        self, objects: dict[str, Any], size: tf.Tensor, source_id: tf.Tensor
    ) -> dict[str, Any]:
        groundtruths = super()._groundtruths(objects, size, source_id)
        codes = objects["masks"][: self.max_groundtruths]
        characters = tf.io.decode_raw(tf.strings.reduce_join(codes), tf.uint8)
        fits = tf.size(characters) <= self.max_mask_bytes
        text = f"the masks of an image take more than parser.max_mask_bytes={self.max_mask_bytes}:"
        check = tf.debugging.Assert(fits, [text, tf.size(characters)])
        with tf.control_dependencies([check]):
            groundtruths["mask_codes"] = preprocess.clip_or_pad_to_fixed_size(
                characters, self.max_mask_bytes
            )
        lengths = tf.strings.length(codes)
        groundtruths["mask_lengths"] = preprocess.clip_or_pad_to_fixed_size(
            lengths, self.max_groundtruths
        )
        return groundtruths


def sample_boxes(
    codes: tf.Tensor, boxes: tf.Tensor, view: View, info: tf.Tensor, side: int
) -> tf.Tensor:
    """What masks cover of boxes.

    Args:
      codes: string [n], see `mask_codes`.
      boxes: [n, 4] in pixels of the resized view.
      view: of the stored image.
      info: what resizing did to the view.
      side: samples along each side of a box.

    Returns:
      uint8 [n, side, side].
    """
    cells = (tf.range(side, dtype=tf.float32) + 0.5) / side
    is_mirrored = view.extent < 0

    def places(axis: int) -> tf.Tensor:
        """Pixels of the stored image, int32 [n, side], rising."""
        begin, end = boxes[:, axis, None], boxes[:, axis + 2, None]
        found = tf.floor(view.places(begin + cells * (end - begin), info, axis))
        found = tf.cast(tf.clip_by_value(found, 0.0, view.size[axis] - 1.0), tf.int32)
        return tf.where(is_mirrored[axis], found[:, ::-1], found)

    masks = mask_codes.sample(codes, tf.cast(view.size, tf.int32), places(0), places(1))

    def turned(masks: tf.Tensor, axis: int) -> tf.Tensor:
        return tf.cond(
            is_mirrored[axis], lambda: tf.reverse(masks, [axis + 1]), lambda: tf.identity(masks)
        )

    return turned(turned(masks, 0), 1)
