"""Data held in memory, so that later passes read no files."""

from typing import Any

import tensorflow as tf

from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources.base import Shard, Shuffle, Source
from hortus.vision.dataloaders.sources.table import Table


class InMemory(Source):
    """The examples of another source, read once and kept as they are, images still encoded.

    It reads when it is made. `Dataset.cache` would read in the first pass, and then give all of its
    data in order: what is kept here can be jumped about in.

    Args:
      source: what to read.
      shard: the share of it to keep; what is kept is read as a whole.
    """

    def __init__(self, source: Source, shard: Shard):
        self._source = source
        references = source.one_pass(shard, None)
        if isinstance(source, Table):
            # Its references are numbers: keep what they refer to.
            references = references.map(
                lambda reference: (reference, source.load(reference)),
                num_parallel_calls=tf.data.AUTOTUNE,
            )
        try:
            parts = list(references.ragged_batch(1024))
        except tf.errors.OpError as error:
            raise DataError(f"the data cannot be read into memory: {error.message}") from None
        if not parts:
            raise DataError("there is no data to read into memory")
        self._kept = tf.nest.map_structure(lambda *values: tf.concat(values, axis=0), *parts)
        self._rows = Table({"row": tf.range(sum(_length(part) for part in parts))})

    @property
    def info(self) -> DatasetInfo:
        return self._source.info

    @tf.autograph.experimental.do_not_convert
    def one_pass(self, shard: Shard, shuffle: Shuffle | None) -> tf.data.Dataset:
        return self._rows.one_pass(shard, shuffle)

    @tf.autograph.experimental.do_not_convert
    def rest_of_pass(self, shard: Shard, shuffle: Shuffle | None, first: int) -> tf.data.Dataset:
        return self._rows.rest_of_pass(shard, shuffle, first)

    def count(self, shard: Shard) -> int:
        return self._rows.count(shard)

    def load(self, reference: dict[str, tf.Tensor]) -> Any:
        kept = self._at(reference["row"])
        return kept[1] if isinstance(self._source, Table) else self._source.load(kept)

    def where(self, reference: dict[str, Any]) -> str:
        return self._source.where(self._reference(reference))

    def hint(self, reference: dict[str, Any], reason: str) -> str:
        return self._source.hint(self._reference(reference), reason)

    def _at(self, row: Any) -> Any:
        return tf.nest.map_structure(lambda values: values[row], self._kept)

    def _reference(self, reference: dict[str, Any]) -> Any:
        kept = self._at(int(reference["row"]))
        kept = kept[0] if isinstance(self._source, Table) else kept
        return tf.nest.map_structure(lambda value: value.numpy(), kept)


def _length(part: Any) -> int:
    first = tf.nest.flatten(part)[0]
    return int(first.nrows() if isinstance(first, tf.RaggedTensor) else first.shape[0])
