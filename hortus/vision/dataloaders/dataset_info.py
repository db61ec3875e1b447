"""What is known of a data set before it is read."""

import dataclasses
import json
import os
from collections.abc import Iterable
from typing import Any, Optional

import tensorflow as tf

from hortus.core.run_folder import RunFolder
from hortus.vision.dataloaders.errors import DataError

FILE_NAME = "hortus_dataset.json"
"""Beside record files: what they hold."""


@dataclasses.dataclass(frozen=True)
class DatasetInfo:
    """Classes and size of a data set, as far as they are known."""

    class_names: tuple[str, ...] = ()
    """Names of the classes, in the order of their numbers; empty where the data does not tell."""
    num_examples: Optional[int] = None
    examples_per_class: tuple[int, ...] = ()
    """Number of examples of each class; empty where it takes reading to know."""


def write_info(folder: str, class_names: Iterable[str], examples_per_file: dict[str, int]) -> None:
    """Writes what `read_info` reads, beside the record files of a data set.

    Args:
      folder: where the files are.
      class_names: in the order of the class numbers.
      examples_per_file: number of records by the files' names, without the folder.
    """
    content = {"class_names": list(class_names), "examples_per_file": dict(examples_per_file)}
    with tf.io.gfile.GFile(os.path.join(folder, FILE_NAME), "w") as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_info(files: Iterable[str]) -> DatasetInfo:
    """What the files beside these record files tell; nothing where there are none.

    The classes of several folders have to be the same.
    """
    files = list(files)
    names: Optional[tuple[str, ...]] = None
    total: Optional[int] = 0
    for folder in dict.fromkeys(os.path.dirname(file) for file in files):
        content = _read(os.path.join(folder, FILE_NAME))
        found = tuple(content.get("class_names", ()))
        if found and names and found != names:
            raise DataError(
                f"{folder}: its classes ({', '.join(found)}) are not those of the other folders "
                f"({', '.join(names)})"
            )
        names = names or found
        counts = content.get("examples_per_file", {})
        here = [os.path.basename(file) for file in files if os.path.dirname(file) == folder]
        known = all(name in counts for name in here)
        total = None if total is None or not known else total + sum(counts[name] for name in here)
    return DatasetInfo(names or (), total)


def read_class_names(folder: str) -> tuple[str, ...]:
    """The names of the classes of the model in a run's folder; empty where they are not known."""
    path = RunFolder(folder).class_names
    names = _read(path)
    if not isinstance(names, (list, dict)) or (names and isinstance(names, dict)):
        raise DataError(f"{path}: expected a list of names")
    return tuple(str(name) for name in names)


def record_files(folder: str) -> list[str]:
    """Names of the record files that a folder's own description tells of."""
    return list(_read(os.path.join(folder, FILE_NAME)).get("examples_per_file", {}))


def _read(path: str) -> Any:
    if not tf.io.gfile.exists(path):
        return {}
    try:
        with tf.io.gfile.GFile(path) as file:
            return json.loads(file.read())
    except ValueError as error:
        raise DataError(f"{path}: not a JSON file: {error}") from None
