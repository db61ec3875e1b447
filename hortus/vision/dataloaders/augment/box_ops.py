"""Operations of geometry_ops.py that take the boxes along.

The image is uint8 [height, width, 3]; boxes are [n, 4] of ymin, xmin, ymax, xmax, as shares of the
image's height and width. New boxes lie on whole pixels, inside the image, and are never empty.
"""

import math
from collections.abc import Callable

import tensorflow as tf

from hortus.vision.dataloaders.augment import geometry_ops
from hortus.vision.dataloaders.randomness import Rng

# Side, as a share of the image, of a box that an operation left without one.
_SMALLEST_SIDE = 0.05


def rotate_with_bboxes(
    image: tf.Tensor, bboxes: tf.Tensor, degrees: float | tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """`rotate`; a box becomes the upright box around its turned corners."""
    angle = tf.cast(degrees, tf.float32) * (math.pi / 180.0)
    cosine, sine = tf.cos(angle), tf.sin(angle)

    def turn(y: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return cosine * y - sine * x, sine * y + cosine * x

    return geometry_ops.rotate(image, degrees), _move(bboxes, image, turn, origin=0.5)


def shear_x_with_bboxes(
    image: tf.Tensor, bboxes: tf.Tensor, level: float | tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """`shear_x`; a box becomes the upright box around its moved corners."""
    moved = _move(bboxes, image, lambda y, x: (y, x - level * y))
    return geometry_ops.shear_x(image, level), moved


def shear_y_with_bboxes(
    image: tf.Tensor, bboxes: tf.Tensor, level: float | tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """`shear_y`; a box becomes the upright box around its moved corners."""
    moved = _move(bboxes, image, lambda y, x: (y - level * x, x))
    return geometry_ops.shear_y(image, level), moved


def translate_x_with_bboxes(
    image: tf.Tensor, bboxes: tf.Tensor, pixels: float | tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """`translate_x`, boxes and all."""
    moved = _move(bboxes, image, lambda y, x: (y, x - pixels))
    return geometry_ops.translate_x(image, pixels), moved


def translate_y_with_bboxes(
    image: tf.Tensor, bboxes: tf.Tensor, pixels: float | tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """`translate_y`, boxes and all."""
    moved = _move(bboxes, image, lambda y, x: (y - pixels, x))
    return geometry_ops.translate_y(image, pixels), moved


def translate_y_only_bboxes(
    image: tf.Tensor,
    bboxes: tf.Tensor,
    pixels: float | tf.Tensor,
    prob: float | tf.Tensor,
    rng: Rng,
) -> tf.Tensor:
    """Moves what is in a box up, inside the box; each box with probability `prob` / 3.

    Boxes stay where they are. Of boxes that overlap, the later one has the last word.
    """
    shape = tf.cast(tf.shape(image)[:2], tf.float32)
    edges = tf.cast(bboxes * tf.tile(shape, [2]), tf.int32)
    chosen = tf.random.stateless_uniform(tf.shape(bboxes)[:1], rng.seed()) < prob / 3.0

    def move_inside(i: tf.Tensor, image: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        top, left, bottom, right = tf.unstack(edges[i])
        bottom = tf.minimum(bottom + 1, tf.shape(image)[0])
        right = tf.minimum(right + 1, tf.shape(image)[1])
        content = geometry_ops.translate_y(image[top:bottom, left:right], pixels)
        around = tf.shape(image) - tf.stack([bottom, right, 3])
        paddings = [[top, around[0]], [left, around[1]], [0, 0]]
        covered = tf.pad(tf.ones_like(content, tf.bool), paddings)
        moved = tf.where(covered, tf.pad(content, paddings), image)
        return i + 1, tf.ensure_shape(moved, image.shape)

    def step(i: tf.Tensor, image: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.cond(chosen[i], lambda: move_inside(i, image), lambda: (i + 1, image))

    count = tf.shape(bboxes)[0]
    _, image = tf.while_loop(lambda i, _: i < count, step, (tf.constant(0), image))
    return image


def _move(
    bboxes: tf.Tensor,
    image: tf.Tensor,
    move: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
    origin: float = 0.0,
) -> tf.Tensor:
    """The boxes around the moved corners.

    Args:
      bboxes: [n, 4], as shares of the image size.
      image: says what a pixel is.
      move: gives the new y, x of corners [n, 4], in pixels from the origin.
      origin: where y and x are 0, as a share of the image size.
    """
    size = tf.cast(tf.shape(image)[:2], tf.float32)
    pixels = tf.cast(tf.cast((bboxes - origin) * tf.tile(size, [2]), tf.int32), tf.float32)
    ymin, xmin, ymax, xmax = tf.unstack(pixels, axis=-1)
    y, x = move(
        tf.stack([ymin, ymin, ymax, ymax], axis=-1), tf.stack([xmin, xmax, xmin, xmax], axis=-1)
    )
    y, x = (tf.cast(tf.cast(value, tf.int32), tf.float32) for value in (y, x))
    begin = tf.stack([tf.reduce_min(y, axis=-1), tf.reduce_min(x, axis=-1)], axis=-1)
    end = tf.stack([tf.reduce_max(y, axis=-1), tf.reduce_max(x, axis=-1)], axis=-1)
    begin = tf.clip_by_value(begin / size + origin, 0.0, 1.0)
    end = tf.clip_by_value(end / size + origin, 0.0, 1.0)
    # A box that left the image keeps a small part, so that every object keeps a box.
    is_empty = end <= begin
    begin = tf.where(is_empty, tf.minimum(begin, 1.0 - _SMALLEST_SIDE), begin)
    end = tf.where(is_empty, begin + _SMALLEST_SIDE, end)
    return tf.concat([begin, end], axis=-1)
