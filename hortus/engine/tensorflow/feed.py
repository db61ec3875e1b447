"""Reading tf.data with a position that can be saved: the input of both engines."""

import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from hortus.engine.base import Feed

_POSITION = "position"


class DatasetFeed(Feed):
    """A plain tf.data iterator of host batches. Unlike a distributed one, it can be saved."""

    def __init__(self, dataset: Any):
        if isinstance(dataset, tf.data.Dataset):
            options = tf.data.Options()
            # Saves where a buffer's elements came from, not the decoded images in it.
            options.experimental_symbolic_checkpoint = True
            dataset = dataset.with_options(options)
        self.dataset = dataset
        self.iterator = iter(dataset)

    @property
    def can_be_saved(self) -> bool:
        """False for a `tf.distribute.DistributedDataset` of the user's own."""
        return isinstance(self.iterator, tf.data.Iterator)

    def save_files(self, folder: str) -> None:
        if self.can_be_saved:
            tf.train.Checkpoint(iterator=self.iterator).write(os.path.join(folder, _POSITION))

    def load_files(self, folder: str) -> None:
        path = os.path.join(folder, _POSITION)
        if self.can_be_saved and not self.stays and os.path.exists(f"{path}.index"):
            tf.train.Checkpoint(iterator=self.iterator).read(path).assert_consumed()

    def __next__(self) -> Any:
        try:
            return next(self.iterator)
        except tf.errors.OutOfRangeError:
            raise StopIteration from None

    def __iter__(self) -> Iterator[Any]:
        return self
