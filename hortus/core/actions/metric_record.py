"""One metric's value at each evaluation, kept in a file so that a restart knows them all."""

import json
import os
from typing import Optional

from hortus.core import atomic_file


class MetricRecord:
    """Values by step.

    Args:
        filename: a JSON file `{"metric": name, "values": {step: value}}`, written as a whole;
            None keeps the values in memory.
        metric: name of the metric. A file of another metric counts as empty.
        write: whether this host writes the file; all hosts read it.
    """

    def __init__(
        self, filename: "Optional[str | os.PathLike[str]]", metric: str = "", write: bool = True
    ):
        self.filename = filename
        self.metric = metric
        self._write = write
        self._loaded: Optional[dict[int, float]] = None

    @property
    def values(self) -> dict[int, float]:
        """The value of each step, in the order of steps."""
        if self._loaded is None:
            self._loaded = self._load()
        return dict(sorted(self._loaded.items()))

    def set(self, step: int, value: float) -> None:
        """Remembers a value, also beyond this process."""
        self._save({**self.values, step: value})

    def rewind(self, step: int) -> None:
        """Forgets the values past `step`."""
        kept = {at: value for at, value in self.values.items() if at <= step}
        if kept != self.values:
            self._save(kept)

    def _load(self) -> dict[int, float]:
        if self.filename is None:
            return {}
        try:
            with open(self.filename, encoding="utf-8") as file:
                content = json.load(file)
            if content["metric"] != self.metric:
                return {}
            return {int(step): float(value) for step, value in content["values"].items()}
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{os.fspath(self.filename)} holds no record of a metric ({error}); "
                "delete it to begin a new one"
            ) from error

    def _save(self, values: dict[int, float]) -> None:
        if self.filename is not None and self._write:
            content = {"metric": self.metric, "values": dict(sorted(values.items()))}
            atomic_file.replace(self.filename, json.dumps(content).encode())
        self._loaded = values


def is_better(value: float, best: float, higher_is_better: bool, min_delta: float = 0.0) -> bool:
    """Whether `value` beats `best` by more than `min_delta`. NaN beats nothing, all beat NaN."""
    if best != best:
        return value == value
    return value > best + min_delta if higher_is_better else value < best - min_delta
