"""A run's folder, read for a report. Nothing here needs the engine."""

import dataclasses
import functools
import math
import os
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from hortus.core import event_file, run_record
from hortus.core.run_folder import RunFolder
from hortus.hyperparams import Origin
from hortus.hyperparams.yaml_text import read_yaml
from hortus.reports import records

LOWER_IS_BETTER = ("loss", "error", "seconds")


class RunError(ValueError):
    """A folder is no run; `str(error)` is for the user."""


@dataclasses.dataclass(frozen=True)
class Picture:
    """The newest picture of a tag.

    Attributes:
        tag: its name, without `image/`.
        step: the step that it was drawn at.
        png: the encoded picture.
    """

    tag: str
    step: int
    png: bytes


Series = list[tuple[int, float]]
"""Steps and values, in the order of the steps."""


class RecordedRun:
    """What a run has left in its folder so far; it may still be running."""

    def __init__(self, folder: "str | os.PathLike[str]"):
        self.files = RunFolder(folder)
        if not os.path.isdir(self.files):
            raise RunError(f"{self.files}: there is no such folder")
        if not records.is_readable(self.files.params):
            raise RunError(
                f"{folder} is no run: it has no {RunFolder.PARAMS}, which `hortus train` writes"
            )

    @property
    def folder(self) -> str:
        """As it was given."""
        return self.files.path

    @property
    def name(self) -> str:
        return self.files.name

    @functools.cached_property
    def config_text(self) -> str:
        """The config of the run, as YAML."""
        return records.read_text(self.files.params)

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """All values of the config by their paths."""
        values, _ = read_yaml(self.config_text, Origin(self.files.params), with_lines=True)
        return flatten(values) if isinstance(values, dict) else {}

    @functools.cached_property
    def starts(self) -> list[dict[str, Any]]:
        """How it was started, each time."""
        return run_record.read(self.folder)

    @functools.cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl, each with step, split, wall_time and values."""
        found = []
        for line in records.json_lines(self.files.metrics):
            step, values = records.finite(line.get("step")), line.get("values")
            if step is None or not isinstance(values, dict):
                continue  # the last line of a run that was killed, or is being written
            found.append({**line, "step": int(step), "values": flatten(values)})
        return sorted(found, key=lambda line: line["step"])

    def series(self, split: str) -> dict[str, Series]:
        """The metrics of `train` or `validation` over the steps."""
        found: dict[str, Series] = {}
        for line in self.lines:
            if line.get("split") != split:
                continue
            for name, value in line["values"].items():
                number = records.number(value)
                if number is not None:
                    found.setdefault(name, []).append((line["step"], number))
        return found

    @property
    def step(self) -> int:
        """The last step on record."""
        return max((line["step"] for line in self.lines), default=0)

    @property
    def seconds(self) -> Optional[float]:
        """Time between the first and the last line on record; pauses count."""
        times = list(_times(line.get("wall_time") for line in self.lines))
        starts = _times(start.get("time") for start in self.starts)
        return max(times) - min([*times, *starts]) if times else None

    @functools.cached_property
    def best(self) -> dict[str, Any]:
        """The metrics of the best checkpoint, as its file tells them; empty if there is none."""
        subdir = self.config.get("trainer.best_checkpoint_export_subdir") or "best"
        if not isinstance(subdir, str) or "\0" in subdir:
            return {}
        return records.mapping(records.read_json(self.files.best_info(subdir)))

    @functools.cached_property
    def class_names(self) -> list[str]:
        """Names of the classes, if the data had any."""
        names = records.read_json(self.files.class_names)
        return [str(name) for name in names] if isinstance(names, list) else []

    def pictures(self) -> list[Picture]:
        """The newest picture of each tag."""
        newest: dict[str, Picture] = {}
        for tag, step, png in event_file.images(self.folder):
            if tag not in newest or step >= newest[tag].step:
                newest[tag] = Picture(tag.removeprefix("image/"), step, png)
        return [newest[tag] for tag in sorted(newest)]


def _times(values: Iterable[Any]) -> Iterator[float]:
    """Those of the values that can be times."""
    return (time for time in map(records.finite, values) if time is not None)


def flatten(values: Any, path: str = "") -> dict[str, Any]:
    """The leaves of nested dictionaries by dotted paths."""
    if not isinstance(values, dict):
        return {path: values}
    flat = {}
    for name, value in values.items():
        flat.update(flatten(value, f"{path}.{name}" if path else str(name)))
    return flat


def best_of(name: str, series: Series) -> tuple[int, float]:
    """Step and value where a metric was best: least for losses, else most."""
    finite = [point for point in series if math.isfinite(point[1])] or series
    if any(word in name.lower() for word in LOWER_IS_BETTER):
        return min(finite, key=lambda point: point[1])
    return max(finite, key=lambda point: point[1])
