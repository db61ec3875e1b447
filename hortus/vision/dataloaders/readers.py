"""The readers of a run, asked when something goes wrong and when the run ends."""

from collections.abc import Iterator
from typing import Optional

from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader


class Readers:
    """Remembers the readers that a task has built.

        self.readers = Readers()
        return self.readers.add("train_data", build_reader(...)).read(input_context)

    A task hands on `error_for` as its `input_error`, and `notes` as its `notes`.
    """

    def __init__(self) -> None:
        self._readers: dict[str, InputReader] = {}

    def add(self, name: str, reader: InputReader) -> InputReader:
        """Notes a reader by the name of its data, and returns it."""
        self._readers[name] = reader
        return reader

    def error_for(self, error: Exception) -> Optional[DataError]:
        """What to tell a user instead of `error`; None if the data is not to blame."""
        for name, reader in self._readers.items():
            text = reader.explain(error)
            if text:
                return DataError(
                    f"{name}: {text}\n  `hortus data check` finds all that is broken; "
                    f"task.{name}.skip_bad_records=true goes on without it"
                )
        return None

    def notes(self) -> Iterator[str]:
        """What was left out of each data set."""
        for name, reader in self._readers.items():
            if reader.bad_records.count:
                yield f"{name}: {reader.bad_records}"
