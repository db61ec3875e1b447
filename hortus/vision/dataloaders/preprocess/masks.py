"""Instance masks: [number, height, width] or [number, height, width, 1]."""

import tensorflow as tf


def resize_and_crop_masks(
    masks: tf.Tensor,
    image_scale: tf.Tensor,
    output_size: tf.Tensor,
    offset: tf.Tensor,
    centered_crop: bool = False,
) -> tf.Tensor:
    """Brings masks, or label images, to where the resized and cropped image shows them.

    Args:
      masks: [number, height, width, channels], in pixels of the original image. Values are never
        mixed: the nearest pixel counts.
      image_scale: (y, x), the third row of the image info.
      output_size: height and width of the result.
      offset: (y, x) of the crop in resized pixels, the fourth row of the image info.
      centered_crop: whether the middle comes to the middle, as in `resize_and_crop_image`.
    """
    size = tf.cast(tf.shape(masks)[1:3], tf.float32)
    target = tf.cast(tf.round(size * tf.cast(image_scale, tf.float32)), tf.int32)
    offset = tf.cast(offset, tf.int32)
    window = tf.cast(output_size, tf.int32)
    resized = tf.image.resize(masks, target, method="nearest")
    kept = resized[:, offset[0] :, offset[1] :, :]
    if centered_crop:
        placed = tf.image.resize_with_crop_or_pad(kept, window[0], window[1])
    else:
        kept = kept[:, : window[0], : window[1], :]
        missing = window - tf.shape(kept)[1:3]
        placed = tf.pad(kept, [[0, 0], [0, missing[0]], [0, missing[1]], [0, 0]])
    if not tf.is_tensor(output_size):
        placed.set_shape([masks.shape[0], *output_size, masks.shape[3]])
    return placed


def horizontal_flip_masks(masks: tf.Tensor) -> tf.Tensor:
    """Mirrors masks left to right."""
    return tf.reverse(masks, axis=[2])


def vertical_flip_masks(masks: tf.Tensor) -> tf.Tensor:
    """Mirrors masks top to bottom."""
    return tf.reverse(masks, axis=[1])
