"""References to the examples of a source, pass after pass without end, from any number on."""

import tensorflow as tf

from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources.base import Shard, Shuffle, Source

_READ_AHEAD = 64
"""References held ready, so that the start of a pass does not stop the work on the last one."""


class Passes:
    """All passes over a host's share of a source, each in an order of its own.

    The order of a pass is a function of the seed and the number of the pass. So the place of a
    reference is found by counting, and nothing but its number has to be remembered.

    Args:
      source: what to go over.
      shard: the share of it.
      seed: of all orders, int64 [2].
      buffer_size: see `Shuffle`.
      copies: how often each reference comes in a row.
    """

    def __init__(
        self, source: Source, shard: Shard, seed: tf.Tensor, buffer_size: int, copies: int = 1
    ):
        self._source, self._shard, self._seed = source, shard, seed
        self._buffer_size, self._copies = buffer_size, copies

    def read(self, first: int) -> tf.data.Dataset:
        """References without end, from number `first` on."""
        number, copy = divmod(first, self._copies)
        references = self._from_number(number)
        if self._copies > 1:
            references = references.flat_map(
                lambda reference: tf.data.Dataset.from_tensors(reference).repeat(self._copies)
            )
        if copy:
            references = references.skip(copy)
        return references.prefetch(_READ_AHEAD)

    def _from_number(self, number: int) -> tf.data.Dataset:
        done, within = divmod(number, self._count()) if number else (0, 0)
        if not within:
            return self._from_pass(done)
        shuffle = self._shuffle(tf.constant(done, tf.int64))
        begun = self._source.rest_of_pass(self._shard, shuffle, within)
        return begun.concatenate(self._from_pass(done + 1))

    def _from_pass(self, first: int) -> tf.data.Dataset:
        return tf.data.Dataset.counter(first).flat_map(
            lambda number: self._source.one_pass(self._shard, self._shuffle(number))
        )

    def _shuffle(self, number: tf.Tensor) -> Shuffle:
        return Shuffle(tf.random.fold_in(self._seed, number), self._buffer_size)

    def _count(self) -> int:
        count = self._source.count(self._shard)
        if not count:
            raise DataError(
                f"host {self._shard.index} of {self._shard.count} has no examples of its own"
            )
        return count
