"""Reading tf.data with a position that can be saved: the input of both engines."""

import glob
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from hortus.engine.base import Feed
from hortus.engine.tensorflow.startable import StartableDataset

_POSITION = "batches.json"
_ITERATOR = "position"


class DatasetFeed(Feed):
    """Batches of a dataset, counted, with a position to go on from.

    How it gets back to a position depends on the dataset:

    - A `StartableDataset`, such as `InputReader` gives, is built anew for it: exact and quick.
    - Any other pipeline that has to be exact is read again up to there: slow, and exact if the
      pipeline is deterministic. So is one whose iterator cannot be saved, such as one with `cache`.
    - Otherwise tf.data saves and restores its iterator: quick, but with some pipelines it goes back
      by a whole pass when it is restored twice within one.

    Args:
        dataset: batches of a host.
        is_exact: whether a dataset that is not startable has to go on with the very same batches.
    """

    def __init__(self, dataset: Any, is_exact: bool = True):
        is_saved_by_tf = (
            not is_exact
            and isinstance(dataset, tf.data.Dataset)
            and not isinstance(dataset, StartableDataset)
        )
        if is_saved_by_tf:
            options = tf.data.Options()
            # Saves where a buffer's elements came from, not the decoded images in it.
            options.experimental_symbolic_checkpoint = True
            dataset = dataset.with_options(options)
        self.dataset = dataset
        self.taken = 0
        """Batches that were taken, by whom ever."""
        self._is_saved_by_tf = is_saved_by_tf
        self._iterator: Any | None = None
        self._goal: Mapping[str, Any] | None = None

    @property
    def iterator(self) -> Any:
        """Begins to read on first use: a run that goes on reads nothing twice."""
        if self._iterator is None:
            if self._goal is None:
                self._iterator = iter(self.dataset)
            elif isinstance(self.dataset, StartableDataset):
                self.dataset = self.dataset.start_at(self._goal)
                self._iterator = iter(self.dataset)
            else:
                self._iterator = self._read_again(int(self._goal["batches"]))
        return self._iterator

    # ---- position ---------------------------------------------------------------------------

    @property
    def position(self) -> dict[str, Any]:
        """Where it is, in values of JSON."""
        if self._iterator is None and self._goal is not None:
            return dict(self._goal)
        if isinstance(self.dataset, StartableDataset):
            return self.dataset.position(self.taken)
        return {"batches": self.taken}

    def go_to(self, position: Mapping[str, Any]) -> None:
        """Reads on from a position when the next batch is asked for."""
        self._goal, self._iterator = dict(position), None
        self.taken = int(position["batches"])

    def get_state(self) -> dict[str, Any]:
        return self.position

    def set_state(self, state: Mapping[str, Any]) -> None:
        if not self.stays:
            self.go_to({"batches": state["batches"]})

    def save_files(self, folder: str) -> None:
        if self._is_saved_by_tf:
            self._save_iterator(os.path.join(folder, _ITERATOR))
        with open(os.path.join(folder, _POSITION), "w", encoding="utf-8") as file:
            json.dump(self.position, file)

    def load_files(self, folder: str) -> None:
        if self.stays:
            return
        with open(os.path.join(folder, _POSITION), encoding="utf-8") as file:
            self.go_to(json.load(file))
        path = os.path.join(folder, _ITERATOR)
        if not os.path.exists(f"{path}.index"):
            return
        if self._is_saved_by_tf:
            self._iterator = iter(self.dataset)
            tf.train.Checkpoint(iterator=self._iterator).read(path).assert_consumed()
        elif isinstance(self.dataset, StartableDataset):
            warnings.warn(
                "the checkpoint was written by an earlier version, whose position in the data "
                f"cannot be relied on: the data go on after {self.taken} batches of the run. That "
                "is exact if train_data.seed is set, and the run was not interrupted before, and "
                "neither mixes data sets nor leaves out records",
                stacklevel=2,
            )

    def _save_iterator(self, path: str) -> None:
        try:
            tf.train.Checkpoint(iterator=self.iterator).write(path)
        except (tf.errors.UnimplementedError, tf.errors.FailedPreconditionError):
            self._is_saved_by_tf = False
            for part in glob.glob(f"{glob.escape(path)}*"):
                os.remove(part)

    def _read_again(self, count: int) -> Any:
        if count:
            warnings.warn(
                f"the data cannot go to their position directly: {count} batches are read again. "
                "A StartableDataset would start there at once",
                stacklevel=2,
            )
        if isinstance(self.dataset, tf.data.Dataset):
            return iter(self.dataset.skip(count))
        iterator = iter(self.dataset)
        for _ in range(count):
            next(iterator)
        return iterator

    # ---- batches ----------------------------------------------------------------------------

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
    batches = list(dataset.take(num_batches))
    if not batches:
        return dataset

    def from_number(first: int) -> tf.data.Dataset:
        first %= len(batches)
        parts = [tf.data.Dataset.from_tensors(batch) for batch in batches[first:] + batches[:first]]
        joined, *others = parts
        for other in others:
            joined = joined.concatenate(other)
        return joined.repeat()

    return StartableDataset(from_number(0), lambda position: from_number(position["batches"]))
