"""Ordinary image files with classes: a folder per class, or a CSV file."""

import collections
import csv
import dataclasses
import logging
import os
from collections.abc import Sequence

import tensorflow as tf

from hortus.vision.dataloaders import paths
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources.table import Table

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif")
_OTHER_IMAGES = (".webp", ".tif", ".tiff", ".heic", ".avif", ".jp2", ".jxl")
LABEL_SEPARATOR = "|"
"""Between the classes of one image in a CSV file."""


@dataclasses.dataclass(frozen=True)
class LabelledImages:
    """Paths of images and their classes, by name."""

    paths: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    """Classes of each image; one, where it is not multi-label data."""
    class_names: tuple[str, ...]
    """All classes, in the order of their numbers."""

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def info(self) -> DatasetInfo:
        counts = collections.Counter(label for labels in self.labels for label in labels)
        per_class = tuple(counts[name] for name in self.class_names)
        return DatasetInfo(self.class_names, len(self), per_class)

    def with_classes(self, class_names: Sequence[str]) -> "LabelledImages":
        """The same images with the class numbers of other data."""
        unknown = sorted(set(self.class_names) - set(class_names))
        if unknown:
            raise DataError(
                f"classes {', '.join(unknown[:5])} are not among those of the training data: "
                f"{', '.join(class_names[:20])}"
            )
        return dataclasses.replace(self, class_names=tuple(class_names))

    def as_source(self, image_key: str, label_key: str, is_multilabel: bool = False) -> Table:
        """Examples of the encoded image and its class number, or numbers."""
        if not self.paths:
            raise DataError("there are no images")
        numbers = {name: number for number, name in enumerate(self.class_names)}
        rows = [[numbers[label] for label in labels] for labels in self.labels]
        labels = (
            tf.ragged.constant(rows, tf.int64, ragged_rank=1)
            if is_multilabel
            else tf.constant([row[0] for row in rows], tf.int64)
        )
        columns = {image_key: tf.constant(self.paths), label_key: labels}
        return Table(columns, files=[image_key], info=self.info)


def read_folders(input_path: str | Sequence[str]) -> LabelledImages:
    """Images of `root`/<class>/**; classes are the names of the sub-folders, sorted.

    Several roots are read as one set. Files that are no images by their ending are passed over, as
    are hidden ones.
    """
    found: dict[str, list[str]] = {}
    passed_over: collections.Counter[str] = collections.Counter()
    roots = paths.match_paths(input_path)
    for root in roots:
        if not os.path.isdir(root):
            raise DataError(
                f"{root} is a file, where a folder with one sub-folder per class is expected"
            )
        for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
            if entry.is_dir() and not entry.name.startswith("."):
                found.setdefault(entry.name, []).extend(_images_below(entry.path, passed_over))
    shown = ", ".join(roots)
    if not found:
        raise DataError(
            f"{shown}: expected one sub-folder per class, with images in it, and found no "
            "sub-folders"
        )
    if not any(found.values()):
        others = ", ".join(f"{count} {ending}" for ending, count in passed_over.most_common(3))
        raise DataError(
            f"{shown}: the sub-folders hold no images ({', '.join(IMAGE_ENDINGS)})"
            + (f", but {others}" if others else "")
        )
    unread = sum(passed_over[ending] for ending in _OTHER_IMAGES)
    if unread:
        logging.getLogger(__name__).warning(
            "%s: %d images are passed over, as they are neither of %s",
            shown,
            unread,
            ", ".join(IMAGE_ENDINGS),
        )
    names = tuple(sorted(found))
    pairs = [(path, (name,)) for name in names for path in found[name]]
    return LabelledImages(tuple(p for p, _ in pairs), tuple(label for _, label in pairs), names)


def _images_below(folder: str, passed_over: "collections.Counter[str]") -> list[str]:
    images = []
    for parent, folders, files in os.walk(folder, followlinks=True):
        folders.sort()
        for name in sorted(files):
            ending = os.path.splitext(name)[1].lower()
            if name.startswith("."):
                continue
            if ending in IMAGE_ENDINGS:
                images.append(os.path.join(parent, name))
            else:
                passed_over[ending or name] += 1
    return images


def read_csv(input_path: str | Sequence[str], is_multilabel: bool = False) -> LabelledImages:
    """Images and classes of CSV files: `path,class` per line, paths relative to the file.

    A class is a name, or a number from 0. Several classes of one image have `|` between them, or
    none stands there. A first line whose path does not exist is a heading.
    """
    rows: list[tuple[str, tuple[str, ...]]] = []
    for name in paths.match_files(input_path):
        rows += _csv_rows(name, is_multilabel)
    used = {label for _, labels in rows for label in labels}
    if used and all(label.isdigit() for label in used):
        names = tuple(str(number) for number in range(max(int(label) for label in used) + 1))
        rows = [(path, tuple(str(int(label)) for label in labels)) for path, labels in rows]
    else:
        names = tuple(sorted(used))
    return LabelledImages(tuple(p for p, _ in rows), tuple(labels for _, labels in rows), names)


def _csv_rows(name: str, is_multilabel: bool) -> list[tuple[str, tuple[str, ...]]]:
    folder = os.path.dirname(name)
    rows = []
    try:
        with open(name, newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(csv.reader(file), start=1):
                if not row:
                    continue
                if len(row) < 2:
                    raise DataError(
                        f"{name}, line {number}: expected `image path,class`, got {row[0]!r}"
                    )
                path = os.path.join(folder, row[0].strip())
                if number == 1 and not os.path.exists(path):
                    continue
                parts = row[1].split(LABEL_SEPARATOR) if is_multilabel else [row[1]]
                labels = tuple(part.strip() for part in parts if part.strip())
                if not labels and not is_multilabel:
                    raise DataError(f"{name}, line {number}: no class for {row[0]}")
                rows.append((path, labels))
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: is not text in UTF-8: {error}") from None
    if not rows:
        raise DataError(f"{name}: no images in it")
    return rows
