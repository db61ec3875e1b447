"""Instance masks as COCO's compressed run-lengths, read and written by TensorFlow.

A mask code is the text that pycocotools calls `counts`: lengths of the runs of 0 and 1 in turn, 0
first, down the columns of the whole image. Each length from the fourth on is stored as its
difference from the one two before, in groups of 5 bits, the lowest first, as characters from `0`
on; bit 6 says that the number goes on. A code has about as many bytes as the mask has runs, so that
100 objects of an image take kilobytes. Only `encode` sees a bitmap of a whole image.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

_FIRST = 48
_BITS, _GROUP, _SIGN, _GOES_ON = 5, 31, 16, 32
_MOST_GROUPS = 7
"""35 bits hold any place in an image of 17 billion pixels."""
_CHARACTERS = np.array([bytes([value]) for value in range(256)], object)


class Borders(NamedTuple):
    """Where runs end, for n masks in one row of numbers."""

    places: tf.Tensor
    """Pixels before the end of each run, counted down the columns; int64 [v], rising in a mask."""
    splits: tf.Tensor
    """Those of mask i are places[splits[i]:splits[i + 1]]; int64 [n + 1]."""


def read_borders(codes: tf.Tensor) -> Borders:
    """The ends of all runs of some masks.

    Args:
      codes: string [n]; an empty text is a mask without pixels.
    """
    characters = tf.io.decode_raw(tf.strings.reduce_join(codes), tf.uint8)
    groups = tf.cast(characters, tf.int64) - _FIRST
    is_last = groups < _GOES_ON
    of_number = tf.cumsum(tf.cast(is_last, tf.int64), exclusive=True)
    ends = tf.where(is_last)[:, 0]
    begins = tf.concat([tf.zeros([1], tf.int64), ends + 1], axis=0)[:-1]
    shifts = _BITS * (tf.range(tf.size(groups, tf.int64)) - tf.gather(begins, of_number))
    parts = tf.bitwise.left_shift(tf.bitwise.bitwise_and(groups, _GROUP), shifts)
    numbers = tf.math.segment_sum(parts, of_number)
    is_negative = tf.bitwise.bitwise_and(tf.gather(groups, ends), _SIGN) > 0
    range_of = tf.bitwise.left_shift(tf.ones_like(ends), _BITS * (ends - begins + 1))
    numbers -= tf.where(is_negative, range_of, tf.zeros_like(range_of))

    lengths = tf.cast(tf.strings.length(codes), tf.int64)
    last_of_code = tf.concat([tf.zeros([1], tf.int64), tf.cumsum(lengths)], axis=0)
    splits = tf.searchsorted(ends, last_of_code, out_type=tf.int64)
    owner = tf.repeat(tf.range(tf.size(lengths, tf.int64)), splits[1:] - splits[:-1])
    first = tf.gather(splits, owner)
    place = tf.range(tf.size(numbers, tf.int64)) - first
    is_odd = place % 2 == 1
    zero = tf.zeros_like(numbers)
    # Numbers add up along two chains: the odd places, and the even ones without the first.
    odd = _sum_within(tf.where(is_odd, numbers, zero), first)
    even = _sum_within(tf.where(is_odd | (place == 0), zero, numbers), first)
    runs = tf.where(is_odd, odd, tf.where(place == 0, numbers, even))
    return Borders(_sum_within(runs, first), splits)


def _sum_within(values: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
    """Running sums that start anew at each mask, whose first value is number `first`."""
    sums = tf.concat([tf.zeros([1], values.dtype), tf.cumsum(values)], axis=0)
    return sums[1:] - tf.gather(sums, first)


def sample(codes: tf.Tensor, size: tf.Tensor, rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """Looks masks up where rows and columns of pixels cross.

    Args:
      codes: string [n].
      size: height and width of the image that they belong to.
      rows: numbers of rows, int [n, h], never falling along a mask.
      columns: numbers of columns, int [n, w].

    Returns:
      uint8 [n, h, w], 0 or 1.
    """
    borders = read_borders(codes)
    height, width = tf.unstack(tf.cast(size, tf.int64))
    rows, columns = tf.cast(rows, tf.int64), tf.cast(columns, tf.int64)
    count = tf.size(codes, tf.int64)
    num_rows, num_columns = tf.shape(rows, tf.int64)[1], tf.shape(columns, tf.int64)[1]
    masks = tf.range(count)
    # Masks follow each other in one long line, so that one search does for all of them.
    counts = borders.splits[1:] - borders.splits[:-1]
    line = borders.places + tf.repeat(masks, counts) * (height * width + 1)
    tops = tf.reshape(columns * height + masks[:, None] * (height * width + 1), [-1])
    begin = tf.searchsorted(line, tops, "right", tf.int64)
    end = tf.searchsorted(line, tops + (height - 1), "right", tf.int64)
    at_top = begin - tf.repeat(borders.splits[:-1], num_columns)

    # The borders inside of these columns: each changes the value from some row on.
    changes = end - begin
    column = tf.repeat(tf.range(count * num_columns), changes)
    within = tf.range(tf.size(column, tf.int64)) - tf.repeat(tf.cumsum(changes) - changes, changes)
    row = tf.gather(line, tf.repeat(begin, changes) + within) - tf.gather(tops, column)
    mask = column // tf.maximum(num_columns, 1)
    row_line = tf.reshape(rows + masks[:, None] * height, [-1])
    reached = tf.searchsorted(row_line, row + mask * height, out_type=tf.int64) - mask * num_rows
    places = tf.stack([column, tf.minimum(reached, num_rows)], axis=1)
    changed = tf.scatter_nd(
        places, tf.ones_like(column, tf.int32), [count * num_columns, num_rows + 1]
    )
    values = tf.cumsum(changed[:, :-1], axis=1) + tf.cast(at_top, tf.int32)[:, None]
    is_object = tf.bitwise.bitwise_and(values, 1) > 0
    is_object = tf.transpose(tf.reshape(is_object, [count, num_columns, num_rows]), [0, 2, 1])
    is_object.set_shape([codes.shape[0], rows.shape[1], columns.shape[1]])
    return tf.cast(is_object, tf.uint8)


def measure(codes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Pixels that each mask covers, and pixels of its image, int64 [n]; both 0 for an empty code.

    Args:
      codes: string [n].
    """
    places, splits = read_borders(codes)
    counts = splits[1:] - splits[:-1]
    total = tf.size(counts, tf.int64)
    owner = tf.repeat(tf.range(total), counts)
    number = tf.range(tf.size(places, tf.int64)) - tf.gather(splits, owner)
    is_last = number + 1 == tf.gather(counts, owner)
    # The runs of 1 are those of odd numbers: their ends count, their begins are taken off.
    zeros = tf.zeros_like(places)
    signed = tf.where(number % 2 == 1, places, tf.where(is_last, zeros, -places))
    areas = tf.math.unsorted_segment_sum(signed, owner, total)
    pixels = tf.math.unsorted_segment_sum(tf.where(is_last, places, zeros), owner, total)
    return tf.ensure_shape(areas, codes.shape), tf.ensure_shape(pixels, codes.shape)


def encode(mask: tf.Tensor) -> tf.Tensor:
    """The code of a bitmap [height, width], where all but 0 is the object; a scalar string."""
    mask = tf.convert_to_tensor(mask)
    is_object = mask if mask.dtype == tf.bool else tf.not_equal(mask, 0)
    line = tf.cast(tf.reshape(tf.transpose(is_object), [-1]), tf.int64)
    line = tf.concat([tf.zeros([1], tf.int64), line], axis=0)
    borders = tf.where(line[1:] != line[:-1])[:, 0]
    ends = tf.concat([borders, [tf.size(line, tf.int64) - 1]], axis=0)
    runs = ends - tf.concat([tf.zeros([1], tf.int64), ends[:-1]], axis=0)
    before = tf.concat([tf.zeros([3], tf.int64), runs[1:-2]], axis=0)[: tf.size(runs)]
    numbers = runs - before
    shifts = tf.range(0, _BITS * _MOST_GROUPS, _BITS, tf.int64)
    shifted = tf.bitwise.right_shift(numbers[:, None], shifts)
    groups = tf.bitwise.bitwise_and(shifted, _GROUP)
    # A number ends with the group whose sign bit tells all that is above it.
    above = tf.bitwise.right_shift(shifted, tf.constant(_BITS, tf.int64))
    is_negative = tf.bitwise.bitwise_and(groups, _SIGN) > 0
    may_end = tf.where(is_negative, above == -1, above == 0)
    is_after = tf.cumsum(tf.cast(may_end, tf.int32), axis=1, exclusive=True) > 0
    groups += tf.where(may_end, tf.zeros_like(groups), _GOES_ON * tf.ones_like(groups))
    kept = tf.boolean_mask(groups + _FIRST, ~is_after)
    return tf.strings.reduce_join(tf.gather(tf.constant(_CHARACTERS), kept))


def encode_pngs(files: tf.Tensor, threshold: float = 0.0) -> tf.Tensor:
    """The codes of masks that are PNG files of the whole image, string [n].

    They are decoded one after the other: one bitmap is in memory at a time.

    Args:
      files: string [n], each a PNG whose pixels are 0 outside of the object.
      threshold: values above belong to the object.
    """

    def one(file: tf.Tensor) -> tf.Tensor:
        pixels = tf.io.decode_png(file, channels=1)[..., 0]
        return tf.cast(pixels, tf.float32) > threshold

    return encode_each(one, files)


def encode_numbers(labels: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """The codes of objects in one image of their numbers, string [n].

    Args:
      labels: number of the object at each pixel, int [height, width].
      numbers: of the objects to encode, [n].
    """
    numbers = tf.cast(numbers, labels.dtype)
    return encode_each(lambda number: tf.equal(labels, number), numbers)


def encode_each(bitmap_of: Callable[[tf.Tensor], tf.Tensor], items: tf.Tensor) -> tf.Tensor:
    """The codes of the bitmaps that a function makes of items [n], one at a time; string [n]."""
    codes = tf.map_fn(
        lambda item: encode(bitmap_of(item)),
        items,
        fn_output_signature=tf.TensorSpec([], tf.string),
        parallel_iterations=1,
    )
    return tf.ensure_shape(codes, [None])
