"""Resizing, with the crop and the padding that bring all images to one size.

Each function also returns the image info, float32 [4, 2], each row as (y, x): the original size,
the size wished for, the scale from original to resized pixels, and the offset of the crop in
resized pixels. Boxes and masks follow the image by it, and predictions find their way back.
"""

import math
from collections.abc import Callable, Sequence

import tensorflow as tf

from hortus.vision.dataloaders.randomness import Rng, Seed


def compute_padded_size(desired_size: Sequence[int], stride: int) -> list[int]:
    """The smallest height and width that hold `desired_size` and are multiples of `stride`."""
    return [math.ceil(side / stride) * stride for side in desired_size]


def resize_and_crop_image(
    image: tf.Tensor,
    desired_size: Sequence[int] | tf.Tensor,
    padded_size: Sequence[int] | tf.Tensor,
    aug_scale_min: float = 1.0,
    aug_scale_max: float = 1.0,
    seed: Seed = None,
    method: str = "bilinear",
    keep_aspect_ratio: bool = True,
    centered_crop: bool = False,
    crop_size: Sequence[int] | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Resizes to `desired_size` times a random scale, crops and pads with 0.

    Args:
      image: [height, width, channels].
      desired_size: height and width that the image has to fit into.
      padded_size: height and width of the result.
      aug_scale_min: smallest random scale; with both at 1 nothing is random.
      aug_scale_max: largest random scale.
      seed: two integers, see the package.
      method: interpolation, a name that `tf.image.resize` knows.
      keep_aspect_ratio: whether both sides get the same scale, so that the image fits inside.
      centered_crop: crop and pad on both sides alike, not at random and at the end. The image info
        does not tell this shift.
      crop_size: height and width of the crop, at a random place; None for `desired_size`.

    Returns:
      The image, float32 [*padded_size, channels], and the image info.
    """
    rng = Rng(seed)
    image_size = tf.cast(tf.shape(image)[:2], tf.float32)
    desired = tf.cast(desired_size, tf.float32)
    is_random = aug_scale_min != 1.0 or aug_scale_max != 1.0
    wanted_window = desired if crop_size is None else tf.cast(crop_size, tf.float32)

    target = tf.round(desired * rng.uniform(aug_scale_min, aug_scale_max)) if is_random else desired
    if keep_aspect_ratio:
        target = tf.round(image_size * tf.reduce_min(target / image_size))
    offset = tf.zeros([2], tf.int32)
    if is_random or (crop_size is not None and not centered_crop):
        offset = _random_offset(target, wanted_window, rng)
    resized = tf.image.resize(image, tf.cast(target, tf.int32), method=method)
    window = tf.cast(wanted_window, tf.int32)
    if centered_crop:
        cropped = _center_crop_or_pad(resized, window, offset)
    else:
        cropped = _crop(resized, window, offset)
    info = _image_info(image_size, desired, target / image_size, offset)
    return _pad(tf.cast(cropped, tf.float32), padded_size), info


def resize_and_crop_image_by_sides(
    image: tf.Tensor,
    short_side: int,
    long_side: int,
    padded_size: Sequence[int],
    aug_scale_min: float = 1.0,
    aug_scale_max: float = 1.0,
    seed: Seed = None,
    method: str = "bilinear",
) -> tuple[tf.Tensor, tf.Tensor]:
    """Like `resize_and_crop_image`, with a size that turns with the image.

    The shorter side becomes `short_side`, or less where the longer one would exceed `long_side`.

    Returns:
      The image, float32 [*padded_size, channels], and the image info, whose size wished for is that
      of the resized image before the random scale.
    """
    rng = Rng(seed)
    image_size = tf.cast(tf.shape(image)[:2], tf.float32)
    scale = tf.minimum(
        short_side / tf.reduce_min(image_size), long_side / tf.reduce_max(image_size)
    )
    desired = tf.round(image_size * scale)
    target, offset = desired, tf.zeros([2], tf.int32)
    if aug_scale_min != 1.0 or aug_scale_max != 1.0:
        target = tf.round(desired * rng.uniform(aug_scale_min, aug_scale_max))
        offset = _random_offset(target, desired, rng)
    resized = tf.image.resize(image, tf.cast(target, tf.int32), method=method)
    cropped = _crop(resized, tf.cast(desired, tf.int32), offset)
    info = _image_info(image_size, desired, target / image_size, offset)
    return _pad(tf.cast(cropped, tf.float32), padded_size), info


def resize_image(
    image: tf.Tensor,
    size: int | tuple[int, int],
    max_size: int | None = None,
    method: str = "bilinear",
) -> tuple[tf.Tensor, tf.Tensor]:
    """Resizes to a height and width, or so that the shorter side has `size` pixels.

    Args:
      image: [height, width, channels].
      size: height and width, or the shorter side.
      max_size: what the longer side must not exceed, where `size` is the shorter one.
      method: interpolation, a name that `tf.image.resize` knows.

    Returns:
      The image, float32, not cropped or padded, and the image info.
    """
    image_size = tf.cast(tf.shape(image)[:2], tf.float32)
    if isinstance(size, int):
        shorter, longer = tf.reduce_min(image_size), tf.reduce_max(image_size)
        side = tf.constant(size, tf.float32)
        if max_size is not None:
            side = tf.minimum(side, tf.floor(max_size * shorter / longer))
        target = tf.floor(side * image_size / shorter)
    else:
        target = tf.cast(size, tf.float32)
    resized = tf.image.resize(image, tf.cast(target, tf.int32), method=method)
    info = _image_info(image_size, target, target / image_size, tf.zeros([2], tf.int32))
    return tf.cast(resized, tf.float32), info


def resize_images(
    resize: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]], images: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Resizes images of one size, [batch, height, width, channels], all at once.

    Args:
      resize: one of the functions above, from an image to the resized one and its info, which does
        the same to every channel.
      images: the images, which take part as the channels of a single one.

    Returns:
      The resized images, and the infos [batch, 4, 2].
    """
    batch, height, width, _ = tf.unstack(tf.shape(images))
    channels = images.shape[3]
    stacked = tf.transpose(images, [1, 2, 0, 3])
    resized, info = resize(tf.reshape(stacked, [height, width, batch * channels]))
    # Sizes that are known stay known, also to what converts the graph for other runtimes.
    size = resized.shape[:2]
    sides = size.as_list() if size.is_fully_defined() else tf.unstack(tf.shape(resized)[:2])
    parts = tf.transpose(tf.reshape(resized, [*sides, -1, channels]), [2, 0, 1, 3])
    return parts, tf.tile(info[None], [batch, 1, 1])


def _random_offset(size: tf.Tensor, window: tf.Tensor, rng: Rng) -> tf.Tensor:
    """A place for the window in an image of this size, each equally likely."""
    room = tf.maximum(size - window, 0.0)
    return tf.cast(tf.floor((room + 1.0) * rng.uniform(shape=[2])), tf.int32)


def _crop(image: tf.Tensor, window: tf.Tensor, offset: tf.Tensor) -> tf.Tensor:
    end = offset + window
    return image[offset[0] : end[0], offset[1] : end[1], :]


def _center_crop_or_pad(image: tf.Tensor, window: tf.Tensor, offset: tf.Tensor) -> tf.Tensor:
    """Crops at the offset, then puts the middle of what is left into the middle of the window."""
    return tf.image.resize_with_crop_or_pad(image[offset[0] :, offset[1] :], window[0], window[1])


def _pad(image: tf.Tensor, padded_size: Sequence[int] | tf.Tensor) -> tf.Tensor:
    missing = tf.cast(padded_size, tf.int32) - tf.shape(image)[:2]
    padded = tf.pad(image, [[0, missing[0]], [0, missing[1]], [0, 0]])
    if not tf.is_tensor(padded_size):
        padded.set_shape([*padded_size, image.shape[-1]])
    return padded


def _image_info(
    image_size: tf.Tensor, desired_size: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor
) -> tf.Tensor:
    return tf.stack([image_size, desired_size, scale, tf.cast(offset, tf.float32)])
