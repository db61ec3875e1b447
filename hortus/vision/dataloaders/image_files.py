"""Ordinary image files with classes: a folder per class, or a CSV file."""

import csv
import dataclasses
import os
from collections.abc import Sequence

import tensorflow as tf

from hortus.vision.dataloaders.errors import DataError, near_paths

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif")


@dataclasses.dataclass(frozen=True)
class LabelledImages:
    """Paths of images and their classes."""

    paths: tuple[str, ...]
    labels: tuple[int, ...]
    """Class of each image, an index in `class_names`."""
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.paths)


def read_folders(roots: Sequence[str]) -> LabelledImages:
    """Images of `root`/<class>/**; classes are the names of the sub-folders, in order.

    Several roots are read as one set. Files that are no images by their ending are passed over, as
    are hidden ones.
    """
    found: dict[str, list[str]] = {}
    for root in roots:
        if not os.path.isdir(root):
            raise DataError(f"{root}: no such folder{near_paths(root)}")
        for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
            if entry.is_dir() and not entry.name.startswith("."):
                found.setdefault(entry.name, []).extend(_images_below(entry.path))
    names = tuple(sorted(found))
    if not names:
        raise DataError(
            f"{', '.join(roots)}: expected one sub-folder per class, with images in it, and found "
            "no sub-folders"
        )
    empty = [name for name in names if not found[name]]
    if len(empty) == len(names):
        endings = ", ".join(IMAGE_ENDINGS)
        raise DataError(f"{', '.join(roots)}: the sub-folders hold no images ({endings})")
    pairs = [(path, label) for label, name in enumerate(names) for path in found[name]]
    paths, labels = zip(*pairs, strict=True)
    return LabelledImages(paths, labels, names)


def _images_below(folder: str) -> list[str]:
    paths = []
    for parent, folders, files in os.walk(folder):
        folders.sort()
        names = (name for name in sorted(files) if not name.startswith("."))
        paths += [os.path.join(parent, n) for n in names if n.lower().endswith(IMAGE_ENDINGS)]
    return paths


def read_csv(files: Sequence[str], class_names: Sequence[str] = ()) -> LabelledImages:
    """Images and classes of CSV files: `path,class` per line, paths relative to the file.

    A class is a name, or a number from 0. A first line whose image does not exist is a heading.
    """
    rows: list[tuple[str, str]] = []
    for name in files:
        rows += _rows(name)
    labels = [label for _, label in rows]
    if all(label.isdigit() for label in labels):
        numbers = [int(label) for label in labels]
        names = tuple(class_names) or tuple(str(i) for i in range(max(numbers, default=-1) + 1))
    else:
        names = tuple(class_names) or tuple(sorted(set(labels)))
        index = {name: number for number, name in enumerate(names)}
        unknown = sorted(set(labels) - set(index))
        if unknown:
            raise DataError(f"{', '.join(files)}: unknown classes {', '.join(unknown[:5])}")
        numbers = [index[label] for label in labels]
    return LabelledImages(tuple(path for path, _ in rows), tuple(numbers), names)


def _rows(name: str) -> list[tuple[str, str]]:
    folder = os.path.dirname(name)
    rows = []
    try:
        with open(name, newline="", encoding="utf-8") as file:
            for number, row in enumerate(csv.reader(file), start=1):
                if not row:
                    continue
                if len(row) < 2:
                    raise DataError(f"{name}:{number}: expected `image path,class`, got {row[0]!r}")
                path, label = os.path.join(folder, row[0].strip()), row[1].strip()
                if number == 1 and not os.path.exists(path):
                    continue
                rows.append((path, label))
    except OSError as error:
        raise DataError(f"{name}: {error.strerror}{near_paths(name)}") from None
    if not rows:
        raise DataError(f"{name}: no images in it")
    return rows


def as_dataset(
    images: LabelledImages, image_key: str, label_key: str, origin_key: str
) -> tf.data.Dataset:
    """Examples by key: the path, the class; `load_image` adds the bytes."""
    return tf.data.Dataset.from_tensor_slices(
        {
            origin_key: list(images.paths),
            label_key: tf.constant(images.labels, tf.int64),
            image_key: list(images.paths),
        }
    )


def load_image(example: dict[str, tf.Tensor], image_key: str) -> dict[str, tf.Tensor]:
    """Replaces the path of an image by the bytes of its file."""
    return {**example, image_key: tf.io.read_file(example[image_key])}
