"""Operations that move the pixels of a uint8 image [height, width, 3].

What comes in from outside is the image mirrored at its border. The nearest pixel counts, so that no
new values appear.
"""

import math
from collections.abc import Sequence

import tensorflow as tf

from hortus.vision.dataloaders.augment import color_ops

GREY = (128, 128, 128)


def rotate(image: tf.Tensor, degrees: float | tf.Tensor) -> tf.Tensor:
    """Turns around the middle, counter-clockwise for positive angles."""
    angle = tf.cast(degrees, tf.float32) * (math.pi / 180.0)
    cosine, sine = tf.cos(angle), tf.sin(angle)
    size = tf.cast(tf.shape(image)[:2], tf.float32)
    height, width = size[0] - 1.0, size[1] - 1.0
    x_shift = (width - (cosine * width - sine * height)) / 2.0
    y_shift = (height - (sine * width + cosine * height)) / 2.0
    return transform(image, [cosine, -sine, x_shift, sine, cosine, y_shift])


def translate_x(image: tf.Tensor, pixels: float | tf.Tensor) -> tf.Tensor:
    """Moves to the left by this many pixels; to the right when negative."""
    return tf.ensure_shape(tf.gather(image, _shifted(image, 1, pixels), axis=1), image.shape)


def translate_y(image: tf.Tensor, pixels: float | tf.Tensor) -> tf.Tensor:
    """Moves up by this many pixels; down when negative."""
    return tf.ensure_shape(tf.gather(image, _shifted(image, 0, pixels), axis=0), image.shape)


def _shifted(image: tf.Tensor, axis: int, pixels: float | tf.Tensor) -> tf.Tensor:
    """The places along an axis that shifted pixels come from, int32.

    The same as `transform` finds, which takes much longer as it looks at each pixel.
    """
    count = tf.cast(tf.shape(image)[axis], tf.float32)
    place = tf.range(count) + tf.cast(pixels, tf.float32)
    # The image and its mirror image, again and again; before the first, they begin with the latter.
    around = 2.0 * count
    left = place + around * tf.floor(-place / around)
    left = tf.where(left < -count, left + around, -left - 1.0)
    right = place - around * tf.floor(place / around)
    right = tf.where(right >= count, around - right - 1.0, right)
    mirrored = tf.where(place < 0.0, left, tf.where(place > count - 1.0, right, place))
    # Halves are rounded up; tf.round would round them to even numbers.
    return tf.cast(tf.floor(tf.clip_by_value(mirrored, 0.0, count - 1.0) + 0.5), tf.int32)


def shear_x(image: tf.Tensor, level: float | tf.Tensor) -> tf.Tensor:
    """Moves row y to the left by level * y pixels."""
    return transform(image, [1.0, level, 0.0, 0.0, 1.0, 0.0])


def shear_y(image: tf.Tensor, level: float | tf.Tensor) -> tf.Tensor:
    """Moves column x up by level * x pixels."""
    return transform(image, [1.0, 0.0, 0.0, level, 1.0, 0.0])


def cutout(
    image: tf.Tensor,
    pad_size: int | tf.Tensor,
    center: tf.Tensor,
    replace: Sequence[int] = GREY,
) -> tf.Tensor:
    """Covers a square.

    Args:
      image: uint8 [height, width, 3].
      pad_size: half the side of the square, in pixels.
      center: (y, x) of its middle, int32; the part outside the image does not count.
      replace: colour of the square.
    """
    begin, end = center - pad_size, center + pad_size
    rows, columns = tf.range(tf.shape(image)[0]), tf.range(tf.shape(image)[1])
    rows = (rows >= begin[0]) & (rows < end[0])
    columns = tf.repeat((columns >= begin[1]) & (columns < end[1]), 3)
    covered = tf.cast(rows, tf.uint8)[:, tf.newaxis] * tf.cast(columns, tf.uint8)
    pixels = color_ops.as_rows(image)
    # Bytes wrap around, so that the difference may be negative; several times faster than tf.where.
    pixels += covered * (color_ops.per_pixel(tf.constant(replace, tf.uint8), image) - pixels)
    return tf.reshape(pixels, tf.shape(image))


def transform(image: tf.Tensor, affine: Sequence[float | tf.Tensor]) -> tf.Tensor:
    """Moves pixels by an affine map.

    Args:
      image: uint8 [height, width, channels].
      affine: a, b, c, d, e, f: the pixel at (x, y) of the result comes from
        (a x + b y + c, d x + e y + f) of the image.
    """
    matrix = tf.stack([tf.cast(value, tf.float32) for value in (*affine, 0.0, 0.0)])
    moved = tf.raw_ops.ImageProjectiveTransformV3(
        images=image[tf.newaxis],
        transforms=matrix[tf.newaxis],
        output_shape=tf.shape(image)[:2],
        fill_value=0.0,
        interpolation="NEAREST",
        fill_mode="REFLECT",
    )[0]
    moved.set_shape(image.shape)
    return moved
