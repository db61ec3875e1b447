"""Copy-paste (Ghiasi et al. 2021): what objects of one image cover of another, and what is left."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hortus.vision.dataloaders.detection import parser
from hortus.vision.dataloaders.detection.mask_samples import sample_pixels


def cover(
    codes: tf.Tensor, boxes: tf.Tensor, shown: parser.Shown, shape: Sequence[Any]
) -> tf.Tensor:
    """The pixels of objects in the resized image, all in one, bool [height, width].

    One object is drawn after the other, so that no more than two bitmaps are there at a time.

    Args:
      codes: of the objects' masks, string [n].
      boxes: of the objects, in pixels of the resized image, [n, 4]; nothing outside is covered.
      shown: the image that they are in.
      shape: of the resized image; height and width come first.
    """
    height, width = shape[:2]

    def add(covered: tf.Tensor, one: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return covered | sample_pixels(*one, shown.view, shown.info, (height, width))

    return tf.foldl(add, (codes, boxes), tf.zeros([height, width], tf.bool), parallel_iterations=1)


def hide(objects: dict[str, Any], covered: tf.Tensor, min_visible: float) -> dict[str, Any]:
    """Objects behind others: masks lose what is covered, boxes and areas shrink with them.

    Args:
      objects: columns of n objects: `boxes` in pixels, `masks` as uint8 samples [n, s, s] of them,
        `areas`, and any others.
      covered: the pixels that are not to be seen any more, bool [height, width].
      min_visible: objects that keep less than this share of their mask are left out.
    """
    masks, boxes = objects["masks"] > 0, objects["boxes"]
    is_left = masks & ~look_up(covered, boxes, masks.shape[1])
    before, after = (tf.reduce_sum(tf.cast(m, tf.float32), axis=[1, 2]) for m in (masks, is_left))
    # One without a mask has nothing that could be hidden.
    share = tf.where(before > 0, after / tf.maximum(before, 1.0), 1.0)
    kept = tf.where((share >= min_visible) & ((after > 0) | (before == 0)))[:, 0]
    hidden = {
        **objects,
        "boxes": tf.where((share < 1.0)[:, None], _shrink(boxes, is_left), boxes),
        "masks": is_left,
        "areas": objects["areas"] * share,
        "former": boxes,
    }
    hidden = parser.gather_objects(hidden, kept)
    former = hidden.pop("former")
    hidden["masks"] = tf.cast(_resample(hidden["masks"], former, hidden["boxes"]), tf.uint8)
    return hidden


def look_up(pixels: tf.Tensor, boxes: tf.Tensor, side: int) -> tf.Tensor:
    """The values of an image [height, width] at side x side cells of boxes: [n, side, side]."""
    size = tf.shape(pixels)
    rows, columns = (_cells(boxes, axis, side) for axis in (0, 1))
    rows, columns = (
        tf.clip_by_value(tf.cast(tf.floor(places), tf.int32), 0, size[axis] - 1)
        for axis, places in enumerate((rows, columns))
    )
    places = rows[:, :, None] * size[1] + columns[:, None, :]
    return tf.gather(tf.reshape(pixels, [-1]), places)


def _cells(boxes: tf.Tensor, axis: int, side: int) -> tf.Tensor:
    """Middles of the cells of boxes along y, 0, or x, 1; [n, side]."""
    shares = (tf.range(side, dtype=tf.float32) + 0.5) / side
    begin, end = boxes[:, axis, None], boxes[:, axis + 2, None]
    return begin + shares * (end - begin)


def _shrink(boxes: tf.Tensor, masks: tf.Tensor) -> tf.Tensor:
    """The parts of boxes [n, 4] that have mask samples [n, s, s] in them, to whole samples."""
    side = masks.shape[1]
    edges = []
    for axis in (0, 1):
        is_used = tf.reduce_any(masks, axis=2 - axis)
        numbers = tf.range(side)
        first = tf.reduce_min(tf.where(is_used, numbers, side), axis=1)
        last = tf.reduce_max(tf.where(is_used, numbers + 1, 0), axis=1)
        begin, extent = boxes[:, axis], boxes[:, axis + 2] - boxes[:, axis]
        edges.append([begin + tf.cast(x, tf.float32) / side * extent for x in (first, last)])
    return tf.stack([edges[0][0], edges[1][0], edges[0][1], edges[1][1]], axis=1)


def _resample(masks: tf.Tensor, boxes: tf.Tensor, new_boxes: tf.Tensor) -> tf.Tensor:
    """Samples of new boxes inside of old ones, from those of the old ones."""
    side = masks.shape[1]

    def places(axis: int) -> tf.Tensor:
        extent = tf.maximum(boxes[:, axis + 2] - boxes[:, axis], 1e-6)[:, None]
        along = (_cells(new_boxes, axis, side) - boxes[:, axis, None]) / extent * side
        return tf.clip_by_value(tf.cast(tf.floor(along), tf.int32), 0, side - 1)

    rows = tf.gather(masks, places(0), axis=1, batch_dims=1)
    return tf.gather(rows, places(1), axis=2, batch_dims=1)
