"""Random changes of colour, for images of 0..255 (uint8 or float)."""

import tensorflow as tf

from hortus.vision.dataloaders.randomness import Rng, Seed


def random_brightness(image: tf.Tensor, brightness: float = 0.0, seed: Seed = None) -> tf.Tensor:
    """Multiplies the image by a random factor in 1 - brightness .. 1 + brightness."""
    return _blend(tf.zeros_like(image), image, _factor(brightness, Rng(seed)))


def random_contrast(image: tf.Tensor, contrast: float = 0.0, seed: Seed = None) -> tf.Tensor:
    """Moves the image away from, or towards, its mean grey, by such a factor."""
    grey = tf.reduce_mean(tf.image.rgb_to_grayscale(tf.cast(image, tf.float32)))
    return _blend(tf.round(grey), image, _factor(contrast, Rng(seed)))


def random_saturation(image: tf.Tensor, saturation: float = 0.0, seed: Seed = None) -> tf.Tensor:
    """Moves the image away from, or towards, its grey version, by such a factor."""
    return _blend(tf.image.rgb_to_grayscale(image), image, _factor(saturation, Rng(seed)))


def color_jitter(
    image: tf.Tensor,
    brightness: float = 0.0,
    contrast: float = 0.0,
    saturation: float = 0.0,
    seed: Seed = None,
) -> tf.Tensor:
    """Changes brightness, contrast and saturation, each by up to its share, 0 to 1; 0 leaves it."""
    rng = Rng(seed)
    if brightness:
        image = random_brightness(image, brightness, rng.seed())
    if contrast:
        image = random_contrast(image, contrast, rng.seed())
    if saturation:
        image = random_saturation(image, saturation, rng.seed())
    return image


def random_jpeg_quality(
    image: tf.Tensor,
    min_quality: int = 20,
    max_quality: int = 100,
    prob_to_apply: float = 0.6,
    seed: Seed = None,
) -> tf.Tensor:
    """Encodes a uint8 image as a JPEG of random quality and decodes it again, now and then.

    `min_quality` and `max_quality` are both possible.
    """
    rng = Rng(seed)
    apply, quality = rng.chance(prob_to_apply), rng.integer(min_quality, max_quality + 1)
    return tf.cond(
        apply,
        lambda: tf.ensure_shape(tf.image.adjust_jpeg_quality(image, quality), image.shape),
        lambda: image,
    )


def _factor(strength: float, rng: Rng) -> tf.Tensor:
    return rng.uniform(max(0.0, 1.0 - strength), 1.0 + strength)


def _blend(start: tf.Tensor, image: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
    """`start` at factor 0, `image` at 1, beyond the image above; in the image's own type."""
    start = tf.cast(start, tf.float32)
    result = start + factor * (tf.cast(image, tf.float32) - start)
    return tf.cast(tf.clip_by_value(result, 0.0, 255.0), image.dtype)
