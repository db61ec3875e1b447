"""Crops of an image, and of an encoded image, where only the crop is decoded if it is a JPEG."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from hortus.vision.dataloaders.randomness import Seed, make_seed

CENTER_CROP_FRACTION = 0.875


def decode_image(image_bytes: tf.Tensor, channels: int = 3) -> tf.Tensor:
    """Decodes a JPEG, PNG, BMP or GIF (its first frame) to uint8 [height, width, channels]."""
    image = tf.io.decode_image(image_bytes, channels=channels, expand_animations=False)
    image.set_shape([None, None, channels])
    return image


def center_crop_image(
    image: tf.Tensor, center_crop_fraction: float = CENTER_CROP_FRACTION
) -> tf.Tensor:
    """Cuts a square out of the middle, its side this share of the shorter side of the image."""
    window = center_window(tf.shape(image)[:2], center_crop_fraction)
    return _crop(image, window)


def random_crop_image(
    image: tf.Tensor,
    aspect_ratio_range: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
    area_range: Sequence[float] = (0.08, 1.0),
    max_attempts: int = 10,
    seed: Seed = None,
) -> tf.Tensor:
    """Cuts out a random rectangle.

    Args:
      image: [height, width, channels].
      aspect_ratio_range: smallest and largest width / height.
      area_range: smallest and largest crop, as a share of the image.
      max_attempts: how often to try for a rectangle that fits; the whole image if none does.
      seed: two integers, see the package.
    """
    window = random_window(tf.shape(image)[:2], aspect_ratio_range, area_range, max_attempts, seed)
    return _crop(image, window)


def decode_and_center_crop(
    image_bytes: tf.Tensor, center_crop_fraction: float = CENTER_CROP_FRACTION
) -> tf.Tensor:
    """`center_crop_image` of an encoded image, uint8."""
    return _decode_and_crop(
        image_bytes, lambda size: center_window(size, center_crop_fraction), channels=3
    )


def decode_and_random_crop(
    image_bytes: tf.Tensor,
    aspect_ratio_range: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
    area_range: Sequence[float] = (0.08, 1.0),
    max_attempts: int = 10,
    seed: Seed = None,
) -> tf.Tensor:
    """`random_crop_image` of an encoded image, uint8."""
    return _decode_and_crop(
        image_bytes,
        lambda size: random_window(size, aspect_ratio_range, area_range, max_attempts, seed),
        channels=3,
    )


def _decode_and_crop(
    image_bytes: tf.Tensor, choose_window: Callable[[tf.Tensor], tf.Tensor], channels: int
) -> tf.Tensor:
    """Decodes the window that is chosen by the image's size, (top, left, height, width)."""

    def jpeg() -> tf.Tensor:
        size = tf.image.extract_jpeg_shape(image_bytes)[:2]
        return tf.image.decode_and_crop_jpeg(image_bytes, choose_window(size), channels=channels)

    def other() -> tf.Tensor:
        image = decode_image(image_bytes, channels)
        return _crop(image, choose_window(tf.shape(image)[:2]))

    image = tf.cond(tf.image.is_jpeg(image_bytes), jpeg, other)
    image.set_shape([None, None, channels])
    return image


def center_window(size: tf.Tensor, fraction: float) -> tf.Tensor:
    """The window (top, left, height, width) of `center_crop_image` in an image of this size."""
    exact = tf.cast(size, tf.float32)
    side = tf.reduce_min(exact) * fraction
    begin = tf.cast((exact - side) / 2.0, tf.int32)
    side = tf.cast(side, tf.int32)
    return tf.stack([begin[0], begin[1], side, side])


def random_window(
    size: tf.Tensor,
    aspect_ratio_range: Sequence[float],
    area_range: Sequence[float],
    max_attempts: int,
    seed: Seed = None,
) -> tf.Tensor:
    """The window (top, left, height, width) of `random_crop_image` in an image of this size."""
    begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
        tf.concat([size, [3]], axis=0),
        bounding_boxes=tf.zeros([1, 0, 4]),
        seed=make_seed(seed),
        min_object_covered=0.0,
        aspect_ratio_range=tuple(aspect_ratio_range),
        area_range=tuple(area_range),
        max_attempts=max_attempts,
        use_image_if_no_bounding_boxes=True,
    )
    return tf.concat([begin[:2], extent[:2]], axis=0)


def _crop(image: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
    top, left, height, width = tf.unstack(window)
    cropped = image[top : top + height, left : left + width, :]
    cropped.set_shape([None, None, image.shape[-1]])
    return cropped
