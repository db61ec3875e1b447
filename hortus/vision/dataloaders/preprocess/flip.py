"""Random mirroring of an image with its boxes and masks."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hortus.vision.dataloaders.preprocess import boxes as box_ops
from hortus.vision.dataloaders.preprocess import masks as mask_ops
from hortus.vision.dataloaders.randomness import Rng, Seed


def random_horizontal_flip(
    image: tf.Tensor,
    normalized_boxes: tf.Tensor | None = None,
    masks: tf.Tensor | None = None,
    seed: Seed = None,
    prob: float = 0.5,
) -> tuple[tf.Tensor, tf.Tensor | None, tf.Tensor | None]:
    """Mirrors left to right with probability `prob`.

    Args:
      image: [height, width, channels].
      normalized_boxes: [n, 4] as shares of the image size, or None.
      masks: [n, height, width], or with a last dimension of 1, or None.
      seed: two integers, see the package.
      prob: 0 to 1.

    Returns:
      The three, None where None was given.
    """
    transforms = (
        lambda image: tf.reverse(image, axis=[1]),
        box_ops.horizontal_flip_boxes,
        mask_ops.horizontal_flip_masks,
    )
    return _random_flip((image, normalized_boxes, masks), transforms, seed, prob)


def random_vertical_flip(
    image: tf.Tensor,
    normalized_boxes: tf.Tensor | None = None,
    masks: tf.Tensor | None = None,
    seed: Seed = None,
    prob: float = 0.5,
) -> tuple[tf.Tensor, tf.Tensor | None, tf.Tensor | None]:
    """Mirrors top to bottom with probability `prob`; otherwise like `random_horizontal_flip`."""
    transforms = (
        lambda image: tf.reverse(image, axis=[0]),
        box_ops.vertical_flip_boxes,
        mask_ops.vertical_flip_masks,
    )
    return _random_flip((image, normalized_boxes, masks), transforms, seed, prob)


def is_flipped(seed: Seed, prob: float = 0.5) -> tf.Tensor:
    """Whether the functions above mirror an image with this seed, for what follows it later."""
    return Rng(seed).chance(prob)


def _random_flip(
    values: tuple[tf.Tensor | None, ...],
    transforms: tuple[Callable[[tf.Tensor], tf.Tensor], ...],
    seed: Seed,
    prob: float,
) -> Any:
    given = [
        (value, flip) for value, flip in zip(values, transforms, strict=True) if value is not None
    ]
    flipped = iter(
        tf.cond(
            is_flipped(seed, prob),
            lambda: [flip(value) for value, flip in given],
            lambda: [tf.identity(value) for value, _ in given],
        )
    )
    return tuple(None if value is None else next(flipped) for value in values)
