"""Decoded images with boxes and masks -> the images and labels of a batch."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hortus.vision.configs import maskrcnn as configs
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.detection import copy_paste, mask_codes, parser
from hortus.vision.dataloaders.detection.mask_samples import sample_boxes
from hortus.vision.dataloaders.detection.view import View
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.randomness import Rng


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
      draw_other: a seed -> an example of the same data, which `parser.copy_paste` takes objects
        from; None where the data cannot be picked from.
      **arguments: of `parser.Parser`; `params.parser` says the side of masks.
    """

    params: configs.DataConfig

    def __init__(
        self,
        *,
        max_mask_bytes: int = 0,
        draw_other: Callable[[tf.Tensor], dict[str, Any]] | None = None,
        **arguments: Any,
    ):
        super().__init__(**arguments)
        if self.params.is_training and self.params.parser.copy_paste and draw_other is None:
            raise DataError(
                "parser.copy_paste needs files of annotations (file_type coco, voc or "
                "instance_masks): records cannot be picked one by one"
            )
        self._draw_other = draw_other
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

    @tf.autograph.experimental.do_not_convert
    def _parse_train_data(
        self, decoded_tensors: dict[str, Any], seed: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        settings = self.params.parser
        if settings.copy_paste is None:
            return super()._parse_train_data(decoded_tensors, seed)
        rng, source_id = Rng(seed), decoded_tensors["source_id"]
        shown = self._show(decoded_tensors, rng, settings.aug_scale_min, settings.aug_scale_max)
        objects = self._with_masks(shown)
        image, objects = tf.cond(
            rng.chance(settings.copy_paste.probability),
            lambda: self._paste(shown.image, objects, rng),
            lambda: (shown.image, objects),
        )
        return image, self._padded(objects, shown.info, source_id)

    def _paste(
        self, image: tf.Tensor, objects: dict[str, Any], rng: Rng
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """The image with objects of another one on top of its own."""
        settings = self.params.parser.copy_paste
        if self._draw_other is None or settings is None:
            raise RuntimeError("there is nothing to paste from")
        other = self._show(
            self._draw_other(rng.seed()), Rng(rng.seed()), settings.scale_min, settings.scale_max
        )
        count = tf.shape(other.objects["boxes"])[0]
        is_chosen = rng.uniform(shape=[count]) < settings.object_probability
        chosen = tf.where(is_chosen & ~other.objects["is_crowd"])[:, 0]
        # All that is pasted has to have a row in the labels.
        room = self.params.parser.max_num_instances - tf.shape(objects["boxes"])[0]
        other = dataclasses.replace(
            other, objects=parser.gather_objects(other.objects, chosen[:room])
        )
        on_top = self._with_masks(other)
        cover = copy_paste.cover(other.objects["masks"], on_top["boxes"], other, image.shape)
        below = copy_paste.hide(objects, cover, settings.min_visible)
        merged = tf.nest.map_structure(
            lambda first, second: tf.concat([first, second], axis=0), below, on_top
        )
        return tf.where(cover[..., None], other.image, image), merged

    def _with_masks(self, shown: parser.Shown) -> dict[str, Any]:
        """The objects of an image with samples of their masks in place of codes."""
        side, objects = self.params.parser.mask_crop_size, shown.objects
        masks = sample_boxes(objects["masks"], objects["boxes"], shown.view, shown.info, side)
        return {**objects, "masks": masks}

    def _labels(self, shown: parser.Shown, source_id: tf.Tensor) -> dict[str, Any]:
        return self._padded(self._with_masks(shown), shown.info, source_id)

    def _padded(
        self, objects: dict[str, Any], info: tf.Tensor, source_id: tf.Tensor
    ) -> dict[str, Any]:
        size = self.params.parser.max_num_instances
        labels = super()._padded(objects, info, source_id)
        return {**labels, "masks": preprocess.clip_or_pad_to_fixed_size(objects["masks"], size)}

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
