"""StartableDataset: batches that can be read from any place on, without reading those before it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

Position = Mapping[str, Any]
"""Where a dataset is: plain JSON values. `batches`, the number of batches before it, is always
there, and is enough to start at, though perhaps not exactly."""


class StartableDataset(tf.data.Dataset):
    """A dataset of batches that knows how to begin anywhere.

    What tf.data itself saves of an iterator cannot be relied on: restored twice within a pass, some
    pipelines go back by a whole one. So a position is counted here, and a pipeline is built anew
    for the place where it is to go on; tf.data only fetches. A task that builds its own pipeline
    can do the same:

        def from_batch(number: int) -> tf.data.Dataset: ...

        return StartableDataset(from_batch(0), lambda position: from_batch(position["batches"]))

    Batches made of it one by one, by `map`, `prefetch` or `with_options`, can be started anywhere
    too; `map` has to be given a function of the batch alone.

    Args:
        dataset: the batches, from where they begin now.
        restart: a position -> the batches from there on, as a plain or a startable dataset.
        locate: number of batches since the very first one -> the position there. It is asked for
            places that have been read, and gives what `restart` needs; None gives the number only.
    """

    def __init__(
        self,
        dataset: tf.data.Dataset,
        restart: Callable[[Position], tf.data.Dataset],
        locate: Callable[[int], dict[str, Any]] | None = None,
    ):
        self._dataset, self._restart, self._locate = dataset, restart, locate
        super().__init__(dataset._variant_tensor)

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._dataset]

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec

    def position(self, batches: int) -> dict[str, Any]:
        """What has to be known to go on after so many batches, counted from the very first."""
        if self._locate is None:
            return {"batches": batches}
        return {**self._locate(batches), "batches": batches}

    def start_at(self, position: Position) -> "StartableDataset":
        """The batches from a position on."""
        dataset = self._restart(position)
        if isinstance(dataset, StartableDataset):
            return dataset
        return StartableDataset(dataset, self._restart, self._locate)

    def map(self, *args: Any, **kwargs: Any) -> "StartableDataset":
        return self._each(lambda dataset: dataset.map(*args, **kwargs))

    def prefetch(self, *args: Any, **kwargs: Any) -> "StartableDataset":
        return self._each(lambda dataset: dataset.prefetch(*args, **kwargs))

    def with_options(self, *args: Any, **kwargs: Any) -> "StartableDataset":
        return self._each(lambda dataset: dataset.with_options(*args, **kwargs))

    def _each(self, change: Callable[[tf.data.Dataset], tf.data.Dataset]) -> "StartableDataset":
        """The same for a dataset with one batch for each of these."""

        def of(startable: StartableDataset) -> StartableDataset:
            return StartableDataset(
                change(startable._dataset),
                lambda position: of(startable.start_at(position)),
                startable.position,
            )

        return of(self)


def zip_startable(parts: Sequence[StartableDataset]) -> StartableDataset:
    """Tuples of a batch of each part, which goes on where all of its parts do."""

    def restart(position: Position) -> StartableDataset:
        own = position.get("parts") or [{"batches": position["batches"]}] * len(parts)
        started = [part.start_at(each) for part, each in zip(parts, own, strict=True)]
        return zip_startable(started)

    return StartableDataset(
        tf.data.Dataset.zip(*parts),
        restart,
        lambda batches: {"parts": [part.position(batches) for part in parts]},
    )
