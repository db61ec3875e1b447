"""Random crops around objects, as in SSD (Liu et al. 2016)."""

from collections.abc import Sequence

import tensorflow as tf

from hortus.vision.configs import common
from hortus.vision.dataloaders.randomness import Rng, Seed


class SSDRandomCrop:
    """Draws one kind of crop per image, and with its chance takes it.

    Args:
      params: the kinds of crop, see `hortus.vision.configs.common.SSDRandomCropParam`; None for
        those of the paper.
      aspect_ratio_range: smallest and largest width / height of a crop.
      area_range: smallest and largest crop, as a share of the image.
    """

    def __init__(
        self,
        params: Sequence[common.SSDRandomCropParam] | None = None,
        aspect_ratio_range: tuple[float, float] = (0.5, 2.0),
        area_range: tuple[float, float] = (0.1, 1.0),
    ):
        self.params = list(params or common.SSDRandomCrop().ssd_random_crop_params)
        self.aspect_ratio_range = tuple(aspect_ratio_range)
        self.area_range = tuple(area_range)

    @tf.autograph.experimental.do_not_convert
    def distort_with_boxes(
        self, image: tf.Tensor, bboxes: tf.Tensor, seed: Seed = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the crop and its boxes, as shares of the crop's height and width.

        Boxes that keep too little of themselves become all zero, so that they stay at their places
        beside classes and masks; drop them with `preprocess.nonempty_box_indices`.

        Args:
          image: [height, width, channels].
          bboxes: [n, 4], as shares of the image's height and width.
          seed: two integers that determine the result; None draws new ones.
        """
        cropped, new_boxes, _ = self.distort_with_window(image, bboxes, seed)
        return cropped, new_boxes

    @tf.autograph.experimental.do_not_convert
    def distort_with_window(
        self, image: tf.Tensor, bboxes: tf.Tensor, seed: Seed = None
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Like `distort_with_boxes`; also returns the crop [4], as shares of the image size."""
        rng = Rng(seed)
        kind = rng.integer(0, len(self.params))
        apply = rng.chance(tf.constant([param.prob_to_apply for param in self.params])[kind])
        cropped, new_boxes, window = tf.cond(
            apply & (tf.shape(bboxes)[0] > 0),
            lambda: self._crop(image, bboxes, kind, rng),
            lambda: (image, bboxes, tf.constant([0.0, 0.0, 1.0, 1.0])),
        )
        cropped.set_shape([None, None, image.shape[-1]])
        return cropped, tf.ensure_shape(new_boxes, bboxes.shape), window

    def _crop(
        self, image: tf.Tensor, bboxes: tf.Tensor, kind: tf.Tensor, rng: Rng
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        covered = tf.constant([param.min_object_covered for param in self.params])[kind]
        overlap = tf.constant([param.min_box_overlap for param in self.params])[kind]
        begin, extent, window = tf.image.stateless_sample_distorted_bounding_box(
            tf.shape(image),
            bounding_boxes=tf.clip_by_value(bboxes, 0.0, 1.0)[tf.newaxis],
            seed=rng.seed(),
            min_object_covered=covered,
            aspect_ratio_range=self.aspect_ratio_range,
            area_range=self.area_range,
        )
        cropped = tf.slice(image, begin, tf.concat([extent[:2], [-1]], axis=0))
        return cropped, crop_boxes(bboxes, window[0, 0], overlap), window[0, 0]


def crop_boxes(bboxes: tf.Tensor, window: tf.Tensor, min_overlap: float | tf.Tensor) -> tf.Tensor:
    """Boxes as a crop sees them; all zero where too little is left.

    Args:
      bboxes: [n, 4], as shares of the image size.
      window: [4], the crop, as shares of the image size.
      min_overlap: share of its area that a box must keep.
    """
    begin, end = tf.tile(window[:2], [2]), tf.tile(window[2:], [2])
    inside = tf.clip_by_value(bboxes, begin, end)
    kept = tf.math.divide_no_nan(_areas(inside), _areas(bboxes)) >= min_overlap
    return tf.where(kept[:, tf.newaxis], (inside - begin) / (end - begin), tf.zeros_like(bboxes))


def _areas(boxes: tf.Tensor) -> tf.Tensor:
    return tf.reduce_prod(tf.maximum(boxes[:, 2:] - boxes[:, :2], 0.0), axis=1)
