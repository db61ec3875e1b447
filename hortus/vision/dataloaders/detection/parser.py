"""Decoded images with boxes -> the images and labels of a batch."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Optional

import tensorflow as tf

from hortus.vision.configs import detection as configs
from hortus.vision.dataloaders import augment, parser, preprocess
from hortus.vision.dataloaders.detection.view import View
from hortus.vision.dataloaders.randomness import Rng


@dataclasses.dataclass(frozen=True)
class Shown:
    """A resized image, and what it shows."""

    image: tf.Tensor
    """Normalised, [height, width, channels]."""
    objects: dict[str, Any]
    """Columns of the objects in it, boxes in its pixels."""
    view: View
    """What it showed of the stored image before it was resized."""
    info: tf.Tensor
    """What resizing did, see `preprocess.resize`."""


class Parser(parser.Parser):
    """An encoded image and its objects, see `detection_decoder` -> (image, labels).

    The image is normalised, [*padded size, channels]. Labels, with n = max_num_instances:

        boxes        float32 [n, 4], ymin, xmin, ymax, xmax in pixels of this image
        classes      int32 [n], from 1
        areas        float32 [n], in pixels of the original image
        is_crowd     bool [n]
        attributes   a dict of float32 [n, 1], where attributes are read
        image_info   float32 [4, 2], see `preprocess.resize`
        source_id    int64

    Rows without an object hold -1, False in `is_crowd`. Crowds and difficult objects are left out
    as the config says. Evaluation has `groundtruths` too: all objects as they are in the original
    image, which are `boxes` in its pixels, `classes`, `areas`, `is_crowds`, `is_difficults`, and
    `source_id`, `height`, `width`, `num_detections`, int32.

    Args:
      output_size: height and width that images are resized into.
      max_level: coarsest feature level; sides are padded to multiples of 2^max_level.
      num_classes: classes of the model, the background included; a higher class is an error. 0 for
        any.
      params: which augmentations to apply, and of which type images are.
      max_groundtruths: rows of `groundtruths`, for data that is known to have more objects in an
        image than labels hold.
    """

    def __init__(
        self,
        output_size: Sequence[int],
        max_level: int,
        num_classes: int,
        params: configs.DataConfig,
        max_groundtruths: int = 0,
    ):
        self.params = params
        self.output_size = tuple(output_size)
        self.padded_size = list(output_size)
        if params.parser.pad:
            self.padded_size = preprocess.compute_padded_size(output_size, 2**max_level)
        self.num_classes = num_classes
        self.max_groundtruths = max(max_groundtruths, params.parser.max_num_instances)
        self._augmentation: Any = augment.build_box_augmentation(params.parser.aug_type)

    @tf.autograph.experimental.do_not_convert
    def _parse_train_data(
        self, decoded_tensors: dict[str, Any], seed: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        settings = self.params.parser
        shown = self._show(
            decoded_tensors, Rng(seed), settings.aug_scale_min, settings.aug_scale_max
        )
        return shown.image, self._labels(shown, decoded_tensors["source_id"])

    def _show(
        self, decoded_tensors: dict[str, Any], rng: Rng, scale_min: float, scale_max: float
    ) -> Shown:
        """The augmented image at a random scale, and what it shows of the objects to learn."""
        image = self._decode(decoded_tensors)
        objects = self._learnt(self._objects(decoded_tensors, tf.shape(image)[:2]))
        image, objects, view = self._augment(image, objects, rng)
        image, info = self._resize(image, scale_min, scale_max, rng.seed())
        return Shown(image, self._visible(objects, info), view, info)

    def _augment(
        self, image: tf.Tensor, objects: dict[str, Any], rng: Rng
    ) -> tuple[tf.Tensor, dict[str, Any], View]:
        """All that is random but the scale; the view tells where the new image was."""
        settings, boxes, view = (
            self.params.parser,
            objects["boxes"],
            View.whole(tf.shape(image)[:2]),
        )
        jpeg = getattr(settings, "aug_rand_jpeg", None)
        if jpeg is not None:
            image = preprocess.random_jpeg_quality(
                image, jpeg.min_quality, jpeg.max_quality, jpeg.prob_to_apply, rng.seed()
            )
        if settings.aug_rand_hflip:
            seed = rng.seed()
            image, boxes, _ = preprocess.random_horizontal_flip(image, boxes, seed=seed)
            view = view.flipped(1, preprocess.is_flipped(seed))
        if settings.aug_rand_vflip:
            seed = rng.seed()
            image, boxes, _ = preprocess.random_vertical_flip(image, boxes, seed=seed)
            view = view.flipped(0, preprocess.is_flipped(seed))
        if self._augmentation is not None:
            image, boxes, view = self._distort(image, boxes, view, rng.seed())
        return image, {**objects, "boxes": boxes}, view

    def _distort(
        self, image: tf.Tensor, boxes: tf.Tensor, view: View, seed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, View]:
        """Applies `aug_type`. Boxes follow all of its operations, and nothing needs the view."""
        image, boxes = self._augmentation.distort_with_boxes(image, boxes, seed)
        return image, boxes, view

    @tf.autograph.experimental.do_not_convert
    def _parse_eval_data(self, decoded_tensors: dict[str, Any]) -> tuple[tf.Tensor, dict[str, Any]]:
        image, source_id = self._decode(decoded_tensors), decoded_tensors["source_id"]
        size = tf.shape(image)[:2]
        objects = self._objects(decoded_tensors, size)
        image, info = self._resize(image)
        visible = self._visible(self._learnt(objects), info)
        labels = self._labels(Shown(image, visible, View.whole(size), info), source_id)
        labels["groundtruths"] = self._groundtruths(objects, size, source_id)
        return image, labels

    def _groundtruths(
        self, objects: dict[str, Any], size: tf.Tensor, source_id: tf.Tensor
    ) -> dict[str, Any]:
        """All objects as they are in the original image."""
        groundtruths = {
            "boxes": preprocess.denormalize_boxes(objects["boxes"], size),
            "classes": tf.cast(objects["classes"], tf.int32),
            "areas": objects["areas"],
            "is_crowds": objects["is_crowd"],
            "source_id": source_id,
            "height": size[0],
            "width": size[1],
            "num_detections": tf.minimum(tf.shape(objects["boxes"])[0], self.max_groundtruths),
        }
        padded = preprocess.pad_groundtruths_to_fixed_size(groundtruths, self.max_groundtruths)
        padded["is_difficults"] = preprocess.clip_or_pad_to_fixed_size(
            objects["is_difficult"], self.max_groundtruths
        )
        return padded

    def inference_image(self, encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The image as evaluation and prediction see it, from its encoded bytes, and its info."""
        image = preprocess.decode_image(encoded, self.params.parser.num_channels)
        return self._resize(image)

    def inference_pixels(self, images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The same of pixels, uint8 [batch, height, width, channels]: images of one size."""
        images, infos = preprocess.resize_images(self._resize_normal, _normalize(images))
        return tf.cast(images, self.params.dtype), infos

    # ---- image ------------------------------------------------------------------------------

    def _decode(self, example: dict[str, Any]) -> tf.Tensor:
        image = preprocess.decode_image(example["image"], self.params.parser.num_channels)
        told = tf.stack([example["height"], example["width"]])
        found = tf.shape(image)[:2]
        fits = tf.reduce_all((told == found) | (told <= 0))
        text = "height and width of the image are not those that its annotation tells:"
        check = tf.debugging.Assert(fits, [text, found, "and not", told])
        with tf.control_dependencies([check]):
            return tf.identity(image)

    def _resize(
        self,
        image: tf.Tensor,
        scale_min: float = 1.0,
        scale_max: float = 1.0,
        seed: Optional[tf.Tensor] = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Normalises first, so that padding has the mean colour."""
        image, info = self._resize_normal(_normalize(image), scale_min, scale_max, seed)
        return tf.cast(image, self.params.dtype), info

    def _resize_normal(
        self,
        image: tf.Tensor,
        scale_min: float = 1.0,
        scale_max: float = 1.0,
        seed: Optional[tf.Tensor] = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return preprocess.resize_and_crop_image(
            image,
            self.output_size,
            self.padded_size,
            scale_min,
            scale_max,
            seed,
            keep_aspect_ratio=self.params.parser.keep_aspect_ratio,
        )

    # ---- objects ----------------------------------------------------------------------------

    def _objects(self, example: dict[str, Any], size: tf.Tensor) -> dict[str, Any]:
        boxes, areas = example["groundtruth_boxes"], example["groundtruth_area"]
        sides = (boxes[:, 2:] - boxes[:, :2]) * tf.cast(size, tf.float32)
        objects = {
            "boxes": boxes,
            "classes": self._checked_classes(example["groundtruth_classes"]),
            "areas": tf.where(areas < 0, sides[:, 0] * sides[:, 1], areas),
            "is_crowd": example["groundtruth_is_crowd"],
            "is_difficult": example["groundtruth_is_difficult"],
        }
        if "groundtruth_attributes" in example:
            objects["attributes"] = example["groundtruth_attributes"]
        return objects

    def _checked_classes(self, classes: tf.Tensor) -> tf.Tensor:
        if not self.num_classes:
            return classes
        is_known = tf.reduce_all((classes > 0) & (classes < self.num_classes))
        text = f"classes of objects must be numbers from 1 to {self.num_classes - 1}, but are"
        with tf.control_dependencies([tf.debugging.Assert(is_known, [text, classes])]):
            return tf.identity(classes)

    def _learnt(self, objects: dict[str, Any]) -> dict[str, Any]:
        """Those to learn from, as far as they are in the image."""
        keep = tf.ones_like(objects["is_crowd"])
        if self.params.parser.skip_crowd_during_training:
            keep &= ~objects["is_crowd"]
        if self.params.parser.skip_difficult_during_training:
            keep &= ~objects["is_difficult"]
        inside = {**objects, "boxes": tf.clip_by_value(objects["boxes"], 0.0, 1.0)}
        return gather_objects(inside, tf.where(keep)[:, 0])

    def _labels(self, shown: Shown, source_id: tf.Tensor) -> dict[str, Any]:
        """What the model learns of an image."""
        return self._padded(shown.objects, shown.info, source_id)

    def _visible(self, objects: dict[str, Any], info: tf.Tensor) -> dict[str, Any]:
        """The objects that the resized image shows, boxes in its pixels."""
        boxes = preprocess.denormalize_boxes(objects["boxes"], info[0])
        boxes = preprocess.resize_and_crop_boxes(boxes, info[2], info[1], info[3])
        visible = preprocess.nonempty_box_indices(boxes)
        return gather_objects({**objects, "boxes": boxes}, visible)

    def _padded(
        self, objects: dict[str, Any], info: tf.Tensor, source_id: tf.Tensor
    ) -> dict[str, Any]:
        size = self.params.parser.max_num_instances

        def padded(values: tf.Tensor, fill: float = -1) -> tf.Tensor:
            return preprocess.clip_or_pad_to_fixed_size(values, size, fill)

        labels = {
            "boxes": padded(objects["boxes"]),
            "classes": padded(tf.cast(objects["classes"], tf.int32)),
            "areas": padded(objects["areas"]),
            "is_crowd": padded(objects["is_crowd"], False),
            "image_info": info,
            "source_id": source_id,
        }
        if "attributes" in objects:
            labels["attributes"] = {
                name: padded(tf.cast(values, tf.float32))
                for name, values in objects["attributes"].items()
            }
        return labels


def gather_objects(objects: dict[str, Any], rows: tf.Tensor) -> dict[str, Any]:
    """Some of the objects, by their numbers."""
    return tf.nest.map_structure(lambda values: tf.gather(values, rows), objects)


def _normalize(image: tf.Tensor) -> tf.Tensor:
    if image.shape[-1] == 3:
        return preprocess.normalize_image(image)
    mean = sum(preprocess.MEAN_NORM) / 3
    deviation = sum(preprocess.STDDEV_NORM) / 3
    channels = image.shape[-1]
    return preprocess.normalize_image(image, [mean] * channels, [deviation] * channels)
