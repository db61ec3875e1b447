"""Pixel values: from 0..255 to what a network wants."""

from collections.abc import Sequence

import tensorflow as tf

# Mean and standard deviation of ImageNet's red, green and blue, of values in 0..1 and in 0..255.
MEAN_NORM = (0.485, 0.456, 0.406)
STDDEV_NORM = (0.229, 0.224, 0.225)
MEAN_RGB = tuple(255 * mean for mean in MEAN_NORM)
STDDEV_RGB = tuple(255 * stddev for stddev in STDDEV_NORM)
MEDIAN_RGB = (128.0, 128.0, 128.0)


def normalize_image(
    image: tf.Tensor, offset: Sequence[float] = MEAN_NORM, scale: Sequence[float] = STDDEV_NORM
) -> tf.Tensor:
    """Maps an image of 0..255 to float32 (image / 255 - offset) / scale.

    `offset` and `scale` hold one value per channel, in units of the full range.
    """
    # One multiplication and one subtraction per pixel instead of four operations.
    factor = 1.0 / (255.0 * tf.constant(scale, tf.float32))
    shift = tf.constant(offset, tf.float32) / tf.constant(scale, tf.float32)
    return tf.cast(image, tf.float32) * factor - shift


def normalize_scaled_float_image(
    image: tf.Tensor, offset: Sequence[float] = MEAN_NORM, scale: Sequence[float] = STDDEV_NORM
) -> tf.Tensor:
    """Maps a float image of 0..1 to (image - offset) / scale."""
    return (image - tf.constant(offset, image.dtype)) / tf.constant(scale, image.dtype)
