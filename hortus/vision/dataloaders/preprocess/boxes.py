"""Boxes and what belongs to them: rows of ymin, xmin, ymax, xmax."""

from collections.abc import Mapping

import tensorflow as tf


def resize_and_crop_boxes(
    boxes: tf.Tensor, image_scale: tf.Tensor, output_size: tf.Tensor, offset: tf.Tensor
) -> tf.Tensor:
    """Moves boxes in pixels to where the resized and cropped image shows them.

    Args:
      boxes: [n, 4], in pixels of the original image.
      image_scale: (y, x), the third row of the image info.
      output_size: height and width of the crop; boxes are cut there.
      offset: (y, x) of the crop in resized pixels, the fourth row of the image info.
    """
    scale, offset = tf.cast(image_scale, boxes.dtype), tf.cast(offset, boxes.dtype)
    limit = tf.tile(tf.cast(output_size, boxes.dtype), [2])
    moved = boxes * tf.tile(scale, [2]) - tf.tile(offset, [2])
    return tf.clip_by_value(moved, tf.zeros_like(limit), limit)


def normalize_boxes(boxes: tf.Tensor, image_size: tf.Tensor) -> tf.Tensor:
    """Turns pixels into shares of the image's height and width."""
    return boxes / tf.tile(tf.cast(image_size, boxes.dtype), [2])


def denormalize_boxes(boxes: tf.Tensor, image_size: tf.Tensor) -> tf.Tensor:
    """Turns shares of the image's height and width into pixels."""
    return boxes * tf.tile(tf.cast(image_size, boxes.dtype), [2])


def nonempty_box_indices(boxes: tf.Tensor) -> tf.Tensor:
    """Rows, int64 [k], of the boxes that have a height and a width."""
    return tf.where(tf.reduce_all(boxes[:, 2:] > boxes[:, :2], axis=1))[:, 0]


def horizontal_flip_boxes(normalized_boxes: tf.Tensor) -> tf.Tensor:
    """Mirrors boxes, as shares of the image size, left to right."""
    ymin, xmin, ymax, xmax = tf.unstack(normalized_boxes, axis=-1)
    return tf.stack([ymin, 1.0 - xmax, ymax, 1.0 - xmin], axis=-1)


def vertical_flip_boxes(normalized_boxes: tf.Tensor) -> tf.Tensor:
    """Mirrors boxes, as shares of the image size, top to bottom."""
    ymin, xmin, ymax, xmax = tf.unstack(normalized_boxes, axis=-1)
    return tf.stack([1.0 - ymax, xmin, 1.0 - ymin, xmax], axis=-1)


def clip_or_pad_to_fixed_size(
    input_tensor: tf.Tensor, size: int, constant_values: float = 0
) -> tf.Tensor:
    """Cuts or fills the first dimension so that it has `size` rows."""
    rows = input_tensor[:size]
    missing = size - tf.shape(rows)[0]
    paddings = [[0, missing]] + [[0, 0]] * (rows.shape.rank - 1)
    result = tf.pad(rows, paddings, constant_values=tf.cast(constant_values, rows.dtype))
    result.set_shape([size, *input_tensor.shape[1:]])
    return result


def pad_groundtruths_to_fixed_size(
    groundtruths: Mapping[str, tf.Tensor], size: int
) -> dict[str, tf.Tensor]:
    """Cuts or fills the objects of one image to `size` rows.

    The fill is -1, but 0 in `is_crowds`: a row that is no object is no crowd either. Values that
    are not per object (`source_id`, `height`, `width`, `num_detections`) stay as they are.
    """
    fills = {"is_crowds": 0}
    return {
        name: clip_or_pad_to_fixed_size(value, size, fills.get(name, -1))
        if value.shape.rank
        else value
        for name, value in groundtruths.items()
    }


def process_source_id(source_id: tf.Tensor) -> tf.Tensor:
    """Turns the image ids of a data set into int64.

    Text that is a number becomes that number, other text the 63 lower bits of its hash, and nothing
    at all (an empty tensor or empty text) -1.
    """
    if source_id.dtype.is_integer:
        source_id = tf.cast(source_id, tf.int64)
        return tf.cond(tf.size(source_id) > 0, lambda: source_id, lambda: tf.constant(-1, tf.int64))
    is_number = tf.strings.regex_full_match(source_id, r"[+-]?\d{1,18}")
    number = tf.strings.to_number(tf.where(is_number, source_id, "-1"), tf.int64)
    # fast_hash: the same id on every machine and in every run.
    name = tf.strings.to_hash_bucket_fast(source_id, 2**63 - 1)
    return tf.where(is_number | (source_id == ""), number, name)
