"""What the augmentations of single images have in common."""

import abc
from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf

from hortus.vision.dataloaders.augment import operations
from hortus.vision.dataloaders.randomness import Rng, Seed

ImageAndBoxes: TypeAlias = tuple[tf.Tensor, tf.Tensor | None]
Number: TypeAlias = float | tf.Tensor
Step: TypeAlias = Callable[..., ImageAndBoxes]


class ImageAugmentation(abc.ABC):
    """Changes an image, and its boxes where it has some, at random.

    Args:
      cutout_const: half the side of the cutout square, in pixels, at level 10.
      translate_const: longest shift, in pixels, at level 10.
    """

    operation_names: tuple[str, ...] = ()
    """All operations that may be applied."""

    def __init__(self, cutout_const: float, translate_const: float):
        self.cutout_const = float(cutout_const)
        self.translate_const = float(translate_const)

    def distort(self, image: tf.Tensor, seed: Seed = None) -> tf.Tensor:
        """Returns the changed image.

        Args:
          image: [height, width, 3] of 0..255; uint8 is quickest.
          seed: two integers that determine the result; None draws new ones.

        Returns:
          The image, of the same shape and type.
        """
        return self._distort(image, None, seed)[0]

    def distort_with_boxes(
        self, image: tf.Tensor, bboxes: tf.Tensor, seed: Seed = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Like `distort`, for an image with boxes [n, 4], as shares of its height and width."""
        return self._distort(image, bboxes, seed)

    def distort_with_window(
        self, image: tf.Tensor, bboxes: tf.Tensor, seed: Seed = None
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Like `distort_with_boxes`, and tells which part of the image is left, for its masks.

        Returns:
          The image, the boxes and the window [4] that the new image shows, as shares of the old
          one: here all of it.

        Raises:
          ValueError: an operation moves pixels in ways that masks do not follow.
        """
        moving = [name for name in self.operation_names if name in operations.MOVING]
        if moving:
            raise ValueError(
                f"masks cannot follow the operations {', '.join(moving)} of {type(self).__name__}: "
                "name them in exclude_ops, or take aug_type ssd_random_crop or none"
            )
        image, bboxes = self._distort(image, bboxes, seed)
        return image, bboxes, tf.constant([0.0, 0.0, 1.0, 1.0])

    # There is nothing for AutoGraph to convert, and looking for it takes five times as long as
    # tracing.
    @tf.autograph.experimental.do_not_convert
    def _distort(self, image: tf.Tensor, bboxes: tf.Tensor | None, seed: Seed) -> ImageAndBoxes:
        dtype = image.dtype
        if dtype != tf.uint8:
            image = tf.cast(tf.clip_by_value(image, 0, 255), tf.uint8)
        image, bboxes = self._apply(image, bboxes, Rng(seed))
        return tf.cast(image, dtype), bboxes

    @abc.abstractmethod
    def _apply(self, image: tf.Tensor, bboxes: tf.Tensor | None, rng: Rng) -> ImageAndBoxes:
        """Changes a uint8 image and its boxes."""

    def _step(self, names: Sequence[str]) -> Step:
        """A function that applies one of these operations.

        It is called as `step(index, level, probability, image, bboxes, seed)`, where `index` is the
        operation's place in `names`, or their number to do nothing; `probability` is for those that
        decide by themselves. Only the chosen operation runs. The function is traced once, however
        often it is called.
        """

        def apply(
            index: tf.Tensor,
            level: Number,
            probability: Number,
            image: tf.Tensor,
            bboxes: tf.Tensor | None,
            seed: tf.Tensor,
        ) -> tuple[tf.Tensor, ...]:
            rng = Rng(seed)

            def branch(name: str) -> Callable[[], tuple[tf.Tensor, ...]]:
                def run() -> tuple[tf.Tensor, ...]:
                    strength = operations.Strength(
                        level, rng, self.cutout_const, self.translate_const, probability
                    )
                    return pack(*operations.apply(name, image, bboxes, strength))

                return run

            branches = [branch(name) for name in names]
            return tf.switch_case(index, [*branches, lambda: pack(image, bboxes)])

        traced = tf.function(apply, autograph=False)

        def step(
            index: tf.Tensor,
            level: Number,
            probability: Number,
            image: tf.Tensor,
            bboxes: tf.Tensor | None,
            seed: tf.Tensor,
        ) -> ImageAndBoxes:
            results = traced(index, level, probability, image, bboxes, seed)
            new_image = tf.ensure_shape(results[0], image.shape)
            return new_image, None if bboxes is None else tf.ensure_shape(results[1], bboxes.shape)

        return step


def pack(image: tf.Tensor, bboxes: tf.Tensor | None) -> tuple[tf.Tensor, ...]:
    """Leaves boxes out where there are none: branches return tensors only."""
    return (image,) if bboxes is None else (image, bboxes)
