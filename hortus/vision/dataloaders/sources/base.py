"""What the input pipeline asks of a source of examples."""

import abc
import dataclasses
from typing import Any

import tensorflow as tf

from hortus.vision.dataloaders.dataset_info import DatasetInfo


@dataclasses.dataclass(frozen=True)
class Shard:
    """The share of a host: every `count`-th, from number `index` on."""

    count: int = 1
    index: int = 0


@dataclasses.dataclass(frozen=True)
class Shuffle:
    """How one pass is shuffled."""

    seed: tf.Tensor
    """int64 [2]."""
    buffer_size: int
    """Records to hold in memory, for a source that cannot jump from place to place."""


class Source(abc.ABC):
    """Gives references to examples, one pass after another, and loads what they refer to.

    References are cheap and come in order, from one thread. Loading is done by many threads, on
    what has been shuffled. A pass must be a function of its arguments: no stage of tf.data may draw
    random numbers of its own, or give the order to threads. So a run that goes on finds the place
    where it was by counting.
    """

    @property
    @abc.abstractmethod
    def info(self) -> DatasetInfo:
        """What is known of the data."""

    @abc.abstractmethod
    def one_pass(self, shard: Shard, shuffle: Shuffle | None) -> tf.data.Dataset:
        """References to all examples of a share, each once; in order if `shuffle` is None."""

    def rest_of_pass(self, shard: Shard, shuffle: Shuffle | None, first: int) -> tf.data.Dataset:
        """What `one_pass` gives from number `first` on, without loading what comes before."""
        return self.one_pass(shard, shuffle).skip(first)

    def count(self, shard: Shard) -> int:
        """The number of references in a pass; it may have to read them."""
        return count_elements(self.one_pass(shard, None))

    @abc.abstractmethod
    def load(self, reference: dict[str, tf.Tensor]) -> Any:
        """The example that a reference stands for: a dict of tensors, images still encoded."""

    @abc.abstractmethod
    def where(self, reference: dict[str, Any]) -> str:
        """Where an example is, for a person; the reference has NumPy values."""

    def hint(self, reference: dict[str, Any], reason: str) -> str:
        """What else helps to understand why an example cannot be read; may be empty."""
        del reference, reason
        return ""

    def find_damage(self) -> str:
        """Looks for files that are damaged and says where; may be empty, and may take long."""
        return ""


def count_elements(dataset: tf.data.Dataset) -> int:
    """The number of elements of a dataset, all of which are read."""
    return int(dataset.reduce(tf.constant(0, tf.int64), lambda count, _: count + 1))


def random_order(count: int | tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """The numbers below `count` in a random order, int64; all orders are equally likely."""
    numbers = tf.range(tf.cast(count, tf.int64), dtype=tf.int64)
    return tf.random.experimental.stateless_shuffle(numbers, seed)


def shuffle_in_blocks(
    dataset: tf.data.Dataset, shuffle: Shuffle, first: int = 0
) -> tf.data.Dataset:
    """Shuffles elements (dicts of tensors) block by block; two blocks fill the buffer.

    Unlike `Dataset.shuffle`, whose order depends on all that came before, this one can begin at any
    place: the blocks before it are passed over, and its own is read from the start.

    Args:
      dataset: the elements in order, without the first `blocks_before(shuffle, first)`.
      shuffle: the seed, and how many elements to hold.
      first: number of the shuffled element to begin with.
    """
    size, (blocks, within) = _block_size(shuffle), divmod(first, _block_size(shuffle))

    def shuffled(number: tf.Tensor, block: dict[str, tf.Tensor]) -> tf.data.Dataset:
        count = tf.shape(tf.nest.flatten(block)[0])[0]
        order = random_order(count, tf.random.fold_in(shuffle.seed, number))
        picked = tf.nest.map_structure(lambda values: tf.gather(values, order), block)
        return tf.data.Dataset.from_tensor_slices(picked)

    # The next block is read while this one is used.
    numbered = dataset.batch(size).enumerate(start=blocks).prefetch(1)
    elements = numbered.flat_map(shuffled)
    return elements.skip(within) if within else elements


def blocks_before(shuffle: Shuffle, first: int) -> int:
    """How many elements are in the blocks before that of number `first`."""
    return first // _block_size(shuffle) * _block_size(shuffle)


def _block_size(shuffle: Shuffle) -> int:
    return max((shuffle.buffer_size + 1) // 2, 1)
