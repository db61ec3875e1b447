"""Which data set of a mix each example is drawn from: a function of the seed and its number."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from hortus.vision.dataloaders.errors import DataError

_BLOCK = 16384
"""Examples whose turns are drawn at once."""


class Turns:
    """Draws one of several data sets for each example, by their weights.

    Unlike `Dataset.sample_from_datasets`, it can begin with any example, and tells how many came
    from each data set before it.

    Args:
      weights: of each data set, at least 0; they need not sum up to 1.
      seed: int64 [2].
    """

    def __init__(self, weights: Sequence[float], seed: tf.Tensor):
        if min(weights) < 0 or not 0 < sum(weights) < float("inf"):
            raise DataError(
                f"weights are {list(weights)}: expected numbers from 0 on, one above it at least"
            )
        shares = np.cumsum(np.asarray(weights, "float64") / sum(weights))
        # Nothing is beyond the last data set that has a weight, whatever rounding did to the sum.
        shares[np.flatnonzero(weights)[-1] :] = np.inf
        self._shares, self._seed = tf.constant(shares), seed
        self._counts = [np.zeros(len(weights), "int64")]
        """Before each block, as far as anybody asked."""

    def read(self, first: int) -> tf.data.Dataset:
        """Numbers of data sets, int64, without end, from that of example `first` on."""
        block, within = divmod(first, _BLOCK)
        return (
            tf.data.Dataset.counter(block)
            .flat_map(lambda number: tf.data.Dataset.from_tensor_slices(self._block(number)))
            .skip(within)
        )

    def count(self, first: int) -> list[int]:
        """How many examples before number `first` come from each data set."""
        blocks, within = divmod(first, _BLOCK)
        while len(self._counts) <= blocks:
            self._counts.append(self._counts[-1] + self._sums(len(self._counts) - 1, _BLOCK))
        return [int(count) for count in self._counts[blocks] + self._sums(blocks, within)]

    def _sums(self, block: int, length: int) -> np.ndarray:
        turns = self._block(tf.constant(block, tf.int64))[:length]
        return np.bincount(turns.numpy(), minlength=len(self._shares))

    def _block(self, number: tf.Tensor) -> tf.Tensor:
        seed = tf.random.fold_in(self._seed, number)
        draws = tf.random.stateless_uniform([_BLOCK], seed, dtype=tf.float64)
        return tf.searchsorted(self._shares, draws, side="right", out_type=tf.int64)
