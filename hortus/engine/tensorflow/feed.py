"""Reading tf.data with a position that can be saved: the input of both engines."""

import glob
import json
import os
import warnings
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from hortus.engine.base import Feed

_POSITION = "position"
_COUNT = "batches.json"


class DatasetFeed(Feed):
    """A plain tf.data iterator of host batches. Unlike a distributed one, it can be saved.

    A pipeline that cannot tell its position, such as one with `cache`, or a
    `tf.distribute.DistributedDataset`, is read again from its beginning up to the number of batches
    that were taken.
    """

    def __init__(self, dataset: Any):
        if isinstance(dataset, tf.data.Dataset):
            options = tf.data.Options()
            # Saves where a buffer's elements came from, not the decoded images in it.
            options.experimental_symbolic_checkpoint = True
            dataset = dataset.with_options(options)
        self.dataset = dataset
        self.iterator = iter(dataset)
        self.taken = 0
        """Batches that were taken, by whom ever."""
        self._tells_position = isinstance(self.iterator, tf.data.Iterator)

    def save_files(self, folder: str) -> None:
        path = os.path.join(folder, _POSITION)
        if self._tells_position:
            try:
                tf.train.Checkpoint(iterator=self.iterator).write(path)
            except (tf.errors.UnimplementedError, tf.errors.FailedPreconditionError):
                self._tells_position = False
                for part in glob.glob(f"{glob.escape(path)}*"):
                    os.remove(part)
        with open(os.path.join(folder, _COUNT), "w", encoding="utf-8") as file:
            json.dump({"batches": self.taken}, file)

    def load_files(self, folder: str) -> None:
        if self.stays:
            return
        with open(os.path.join(folder, _COUNT), encoding="utf-8") as file:
            taken = int(json.load(file)["batches"])
        path = os.path.join(folder, _POSITION)
        if self._tells_position and os.path.exists(f"{path}.index"):
            tf.train.Checkpoint(iterator=self.iterator).read(path).assert_consumed()
        else:
            self._read_again(taken)
        self.taken = taken

    def _read_again(self, count: int) -> None:
        if count:
            warnings.warn(
                f"the data cannot go to their position directly: {count} batches are read again",
                stacklevel=2,
            )
        if isinstance(self.dataset, tf.data.Dataset):
            self.iterator = iter(self.dataset.skip(count))
            return
        self.iterator = iter(self.dataset)
        for _ in range(count):
            next(self.iterator)

    def __next__(self) -> Any:
        try:
            batch = next(self.iterator)
        except tf.errors.OutOfRangeError:
            raise StopIteration from None
        self.taken += 1
        return batch

    def __iter__(self) -> Iterator[Any]:
        return self


def repeat_first(dataset: tf.data.Dataset, num_batches: int) -> tf.data.Dataset:
    """The first batches of a dataset, again and again; kept in memory."""
    # Not by `cache`, whose position cannot be saved.
    parts = [tf.data.Dataset.from_tensors(batch) for batch in dataset.take(num_batches)]
    if not parts:
        return dataset
    first, *others = parts
    for other in others:
        first = first.concatenate(other)
    return first.repeat()
