"""What masks cover of boxes, by samples, wherever the image was turned, cut and scaled to."""

import tensorflow as tf

from hortus.vision.dataloaders.detection import mask_codes
from hortus.vision.dataloaders.detection.view import View


def sample_boxes(
    codes: tf.Tensor, boxes: tf.Tensor, view: View, info: tf.Tensor, side: int
) -> tf.Tensor:
    """What masks cover of boxes.

    Args:
      codes: string [n], see `mask_codes`.
      boxes: [n, 4] in pixels of the resized view.
      view: of the stored image.
      info: what resizing did to the view.
      side: samples along each side of a box.

    Returns:
      uint8 [n, side, side].
    """
    cells = (tf.range(side, dtype=tf.float32) + 0.5) / side
    is_mirrored = view.extent < 0

    def places(axis: int) -> tf.Tensor:
        """Pixels of the stored image, int32 [n, side], rising."""
        begin, end = boxes[:, axis, None], boxes[:, axis + 2, None]
        found = tf.floor(view.places(begin + cells * (end - begin), info, axis))
        found = tf.cast(tf.clip_by_value(found, 0.0, view.size[axis] - 1.0), tf.int32)
        return tf.where(is_mirrored[axis], found[:, ::-1], found)

    masks = mask_codes.sample(codes, tf.cast(view.size, tf.int32), places(0), places(1))
    for axis in (0, 1):
        masks = _turned(masks, is_mirrored[axis], axis + 1)
    return masks


def sample_pixels(
    code: tf.Tensor, box: tf.Tensor, view: View, info: tf.Tensor, size: tuple[int, int]
) -> tf.Tensor:
    """The pixels of one object in the resized view, bool [*size].

    Args:
      code: of its mask, a scalar string.
      box: [4], in pixels of the resized view; nothing outside is the object's.
      view: of the stored image.
      info: what resizing did to the view.
      size: height and width of the result.
    """
    is_mirrored = view.extent < 0

    def places(axis: int) -> tuple[tf.Tensor, tf.Tensor]:
        middles = tf.range(size[axis], dtype=tf.float32) + 0.5
        found = tf.floor(view.places(middles, info, axis))
        found = tf.cast(tf.clip_by_value(found, 0.0, view.size[axis] - 1.0), tf.int32)
        is_inside = (middles >= box[axis]) & (middles < box[axis + 2])
        return tf.where(is_mirrored[axis], found[::-1], found), is_inside

    (rows, row_inside), (columns, column_inside) = places(0), places(1)
    pixels = mask_codes.sample(code[None], tf.cast(view.size, tf.int32), rows[None], columns[None])[
        0
    ]
    for axis in (0, 1):
        pixels = _turned(pixels, is_mirrored[axis], axis)
    return (pixels > 0) & row_inside[:, None] & column_inside[None, :]


def _turned(values: tf.Tensor, condition: tf.Tensor, axis: int) -> tf.Tensor:
    return tf.cond(condition, lambda: tf.reverse(values, [axis]), lambda: tf.identity(values))
