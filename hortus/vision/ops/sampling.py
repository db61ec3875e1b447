"""Random choice of some rows, balanced between objects and background."""

from typing import Any, NamedTuple, TypeAlias

import keras
from keras import ops

from hortus.vision.ops import boxes as box_ops

Seed: TypeAlias = int | keras.random.SeedGenerator | None
"""A number gives the same choice at every call, a `SeedGenerator` a new one each, None any."""


class Sample(NamedTuple):
    """Chosen rows of each image: positives first, then negatives, then rows that fill up."""

    indices: Any
    """The rows, int32 [batch, size]."""
    is_chosen: Any
    """False for rows that fill up because there were too few, bool [batch, size]."""


def balanced(
    positive: Any, negative: Any, size: int, positive_fraction: float, seed: Seed = None
) -> Sample:
    """Chooses `size` rows of each image at random, each at most once.

    Args:
        positive: which rows are objects, bool [batch, n].
        negative: which rows are background, bool [batch, n]. Rows that are neither are not chosen.
        size: rows per image; n if there are fewer.
        positive_fraction: largest share of positives, 0 to 1. Negatives take the rest, also of
            what the positives leave.
        seed: see `Seed`.
    """
    n = positive.shape[1]
    size = min(size, n)
    most = min(int(size * positive_fraction), n)
    # One random order serves both: no row is positive and negative.
    order = keras.random.uniform(ops.shape(positive), minval=0.5, seed=seed)
    negatives = _best(order, negative, size)
    slots = ops.expand_dims(ops.arange(size, dtype="int32"), 0)
    if most == 0:
        return Sample(negatives, slots < _count(negative))
    chosen = ops.concatenate([_best(order, positive, most), negatives], axis=1)
    positives = ops.minimum(_count(positive), most)
    places = ops.where(slots < positives, slots, most + slots - positives)
    return Sample(box_ops.take(chosen, places), slots < positives + _count(negative))


def balanced_mask(
    positive: Any, negative: Any, size: int, positive_fraction: float, seed: Seed = None
) -> Any:
    """Which rows `balanced` chooses, bool [batch, n]."""
    n = positive.shape[1]
    size = min(size, n)
    most = min(int(size * positive_fraction), n)
    order = keras.random.uniform(ops.shape(positive), minval=0.5, seed=seed)
    positives = ops.minimum(_count(positive), most)
    chosen = _first(order, negative, size, size - positives)
    return chosen | _first(order, positive, most, positives) if most else chosen


def _first(order: Any, among: Any, most: int, k: Any) -> Any:
    """Marks the first `k` [batch, 1], of at most `most`, in random order of those in `among`."""
    order = ops.where(among, order, 0.0)
    last = ops.take_along_axis(ops.top_k(order, most)[0], ops.maximum(k - 1, 0), axis=1)
    before, equal = order > last, among & (order == last)
    # Two rows may have drawn the same number: of those, the upper ones.
    tied = ops.cumsum(ops.cast(equal, "int32"), axis=1) <= k - _count(before)
    return (before | (equal & tied)) & (k > 0)


def _best(order: Any, among: Any, k: int) -> Any:
    """The first k rows in random order of those that `among` marks, followed by others."""
    return ops.cast(ops.top_k(ops.where(among, order, 0.0), k)[1], "int32")


def _count(mask: Any) -> Any:
    return ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
