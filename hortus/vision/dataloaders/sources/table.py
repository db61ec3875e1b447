"""Examples that are known one by one: lists of files with labels, or data held in memory."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources.base import Shard, Shuffle, Source, random_order

Column: TypeAlias = Any
"""A tensor or a ragged tensor."""


class Table(Source):
    """One row per example. A pass is shuffled as a whole: only row numbers are in memory twice.

    Args:
      columns: values by key, each with the examples in its first dimension; a ragged one where
        examples have different numbers of values.
      files: keys of columns that hold paths; the example has the content of the file instead.
      info: what is known of the data; None knows the number of examples.
      places: what to call each row in an error message; None for the first of its files.
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        files: Sequence[str] = (),
        info: DatasetInfo | None = None,
        places: Sequence[str] | None = None,
    ):
        self._columns: dict[str, Column] = {
            key: values if isinstance(values, tf.RaggedTensor) else tf.convert_to_tensor(values)
            for key, values in columns.items()
        }
        self._files = tuple(files)
        self._places = None if places is None else tf.convert_to_tensor(places)
        first = next(iter(self._columns.values()))
        self._count = int(first.nrows() if isinstance(first, tf.RaggedTensor) else first.shape[0])
        self._info = info or DatasetInfo(num_examples=self._count)

    def __len__(self) -> int:
        return self._count

    @property
    def info(self) -> DatasetInfo:
        return self._info

    @property
    def columns(self) -> dict[str, Column]:
        """Values by key."""
        return dict(self._columns)

    @property
    def files(self) -> tuple[str, ...]:
        """Keys of columns that hold paths."""
        return self._files

    @tf.autograph.experimental.do_not_convert
    def one_pass(self, shard: Shard, shuffle: Shuffle | None) -> tf.data.Dataset:
        return self.rest_of_pass(shard, shuffle, 0)

    @tf.autograph.experimental.do_not_convert
    def rest_of_pass(self, shard: Shard, shuffle: Shuffle | None, first: int) -> tf.data.Dataset:
        if self._count <= shard.index:
            raise DataError(
                f"{self._count} examples are too few for host {shard.index} of {shard.count}"
            )
        rows = tf.range(shard.index, self._count, shard.count, tf.int64)
        if shuffle is not None:
            rows = tf.gather(rows, random_order(tf.size(rows), shuffle.seed))
        return tf.data.Dataset.from_tensor_slices({"row": rows[first:]})

    def count(self, shard: Shard) -> int:
        return len(range(shard.index, self._count, shard.count))

    def load(self, reference: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        row = reference["row"]
        example = {key: values[row] for key, values in self._columns.items()}
        for key in self._files:
            example[key] = tf.io.read_file(example[key])
        return example

    def where(self, reference: dict[str, Any]) -> str:
        row = int(reference["row"])
        if self._places is not None:
            return self._places[row].numpy().decode()
        if self._files:
            return self._columns[self._files[0]][row].numpy().decode()
        return f"example {row}"

    def hint(self, reference: dict[str, Any], reason: str) -> str:
        del reason
        if not self._files:
            return ""
        path = self._columns[self._files[0]][int(reference["row"])].numpy().decode()
        if "://" not in path and os.path.isfile(path) and os.path.getsize(path) == 0:
            return "; the file is empty"
        return ""
