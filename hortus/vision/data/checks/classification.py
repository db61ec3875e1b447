"""Checks of classification data: unreadable images, labels, classes, copies, sizes."""

import collections
import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from hortus.vision.configs import image_classification as configs
from hortus.vision.data import progress
from hortus.vision.data.checks.findings import Finding
from hortus.vision.data.checks.splits import (
    copies_across,
    named_splits,
    no_data,
    some,
)
from hortus.vision.data.raw_images import RawImage, RawImages, class_text, pixel_digest
from hortus.vision.dataloaders.errors import DataError

_UNBALANCED = 10
"""Largest class over smallest, from which on it is worth a warning."""
_ROWS, _BAR = 24, 30
"""Rows of a table, and length of its longest bar."""


@dataclasses.dataclass
class _Split:
    """What one pass over a split has seen."""

    name: str
    params: configs.DataConfig
    class_names: tuple[str, ...] = ()
    count: int = 0
    unreadable: list[str] = dataclasses.field(default_factory=list)
    outside: list[str] = dataclasses.field(default_factory=list)
    unlabelled: int = 0
    damage: str = ""
    per_class: "collections.Counter[int]" = dataclasses.field(default_factory=collections.Counter)
    sizes: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    """Height and width of each readable image."""
    seen: dict[bytes, list[tuple[str, tuple[int, ...]]]] = dataclasses.field(default_factory=dict)
    """Where the images with these pixels are, and their classes."""


def check(task_config: configs.ImageClassificationTask) -> Iterator[Finding]:
    """Reads all images of training and validation once and yields what is wrong, then facts."""
    chosen = named_splits(task_config)
    if not chosen:
        yield no_data(
            "a folder with one sub-folder per class, and task.train_data.file_type=folder"
        )
    splits = []
    for name, params in chosen.items():
        try:
            split = _read(name, params, task_config)
        except DataError as error:
            yield Finding("error", f"{name}: {error}")
            continue
        splits.append(split)
        yield from _faults(split, task_config)
        yield from _copies_within(split)
        yield from _facts(split, task_config)
    places = {split.name: {key: at[0][0] for key, at in split.seen.items()} for split in splits}
    yield from copies_across(places)


def _read(name: str, params: configs.DataConfig, task: configs.ImageClassificationTask) -> _Split:
    images = RawImages(params, task)
    split = _Split(name, params, images.info.class_names)
    try:
        for image in progress.track(images, f"reading {name}", images.info.num_examples):
            _take_in(split, image, task.model.num_classes)
    except DataError as error:
        split.damage = str(error)
    return split


def _take_in(split: _Split, image: RawImage, num_classes: int) -> None:
    split.count += 1
    split.per_class.update(image.classes)
    split.unlabelled += not image.classes
    if any(number < 0 or (num_classes and number >= num_classes) for number in image.classes):
        shown = class_text(image.classes, split.class_names)
        split.outside.append(f"{image.where}: {shown}")
    if image.pixels is None:
        split.unreadable.append(f"{image.where}: {image.problem}")
        return
    split.sizes.append((image.pixels.shape[0], image.pixels.shape[1]))
    split.seen.setdefault(pixel_digest(image.pixels), []).append((image.where, image.classes))


# ---- faults ---------------------------------------------------------------------------------


def _faults(split: _Split, task: configs.ImageClassificationTask) -> Iterator[Finding]:
    name = split.name
    if split.damage:
        yield Finding("error", f"{name}: a file is damaged: {split.damage}")
    if split.unreadable:
        yield some("error", f"{name}: images that cannot be read", split.unreadable)
    yield from _class_faults(split, task)
    if split.unlabelled and not split.params.is_multilabel:
        yield Finding("error", f"{name}: images without a class", count=split.unlabelled)


def _class_faults(split: _Split, task: configs.ImageClassificationTask) -> Iterator[Finding]:
    name, wanted = split.name, task.model.num_classes
    highest = max(split.per_class, default=-1) + 1
    known = max(len(split.class_names), highest)
    if not wanted:
        yield Finding("error", f"{name}: set task.model.num_classes={known}; it is 0")
    elif split.outside:
        yield some(
            "error",
            f"{name}: classes outside of 0 to {wanted - 1}, as task.model.num_classes is {wanted}",
            split.outside,
        )
    elif len(split.class_names) > wanted:
        yield Finding(
            "error",
            f"{name}: the data names {len(split.class_names)} classes, the model has {wanted}: set "
            f"task.model.num_classes={len(split.class_names)}",
        )
    elif split.class_names and len(split.class_names) < wanted:
        yield Finding(
            "warning",
            f"{name}: the data names {len(split.class_names)} classes, the model has {wanted}",
        )
    empty = [
        class_text([number], split.class_names)
        for number in range(len(split.class_names) or wanted or highest)
        if not split.per_class[number]
    ]
    if empty and split.count:
        yield some("warning", f"{name}: classes without any image", empty)


# ---- copies ---------------------------------------------------------------------------------


def _copies_within(split: _Split) -> Iterator[Finding]:
    copies = [places for places in split.seen.values() if len(places) > 1]
    differing = [places for places in copies if len({classes for _, classes in places}) > 1]
    if differing:
        shown = [
            " = ".join(
                f"{where} ({class_text(classes, split.class_names)})" for where, classes in places
            )
            for places in differing
        ]
        yield some("warning", f"{split.name}: the same image with different classes", shown)
    same = [places for places in copies if len({classes for _, classes in places}) == 1]
    if same:
        shown = [" = ".join(where for where, _ in places) for places in same]
        yield some("warning", f"{split.name}: images that are there more than once", shown)


# ---- facts ----------------------------------------------------------------------------------


def _facts(split: _Split, task: configs.ImageClassificationTask) -> Iterator[Finding]:
    per_class = {
        class_text([number], split.class_names): split.per_class[number]
        for number in sorted(split.per_class)
    }
    yield Finding(
        "note",
        f"{split.name}: {split.count} images of {len(per_class)} classes",
        count=split.count,
    )
    if per_class:
        yield Finding("note", f"{split.name}: images per class\n{_table(per_class)}")
        most, fewest = max(per_class.values()), min(per_class.values())
        if most >= _UNBALANCED * fewest and split.params.is_training:
            yield Finding(
                "warning",
                f"{split.name}: the largest class has {most} images, the smallest {fewest}; "
                "task.losses.class_weights can make up for it",
            )
    if split.sizes:
        yield from _size_facts(split, task)


def _size_facts(split: _Split, task: configs.ImageClassificationTask) -> Iterator[Finding]:
    sizes = np.array(split.sizes)
    buckets = collections.Counter(2 ** int(np.log2(side)) for side in sizes.max(axis=1))
    shown = {f"{low} to {2 * low - 1}": buckets[low] for low in sorted(buckets)}
    (low_y, low_x), (high_y, high_x) = sizes.min(axis=0), sizes.max(axis=0)
    yield Finding(
        "note",
        f"{split.name}: heights {low_y} to {high_y}, widths {low_x} to {high_x}; longer side in "
        f"pixels\n{_table(shown, limit=False)}",
    )
    wanted = [side for side in task.model.input_size[:2] if side]
    if len(wanted) == 2:
        small = int(np.sum(np.any(sizes < np.array(wanted) / 2, axis=1)))
        if small:
            yield Finding(
                "note",
                f"{split.name}: {small} images have less than half of the {wanted[0]} x "
                f"{wanted[1]} pixels of the model's input, and are enlarged",
                count=small,
            )


def _table(counts: Mapping[str, int], limit: bool = True) -> str:
    """Lines of name, count and bar; of many, the largest and the smallest."""
    rows = list(counts.items())
    left_out = 0
    if limit and len(rows) > _ROWS:
        ranked = sorted(rows, key=lambda row: -row[1])
        left_out = len(rows) - _ROWS
        rows = [*ranked[: _ROWS // 2], *ranked[-_ROWS // 2 :]]
    width, most = max(len(name) for name, _ in rows), max(count for _, count in rows)
    lines = []
    for index, (name, count) in enumerate(rows):
        if left_out and index == _ROWS // 2:
            lines.append(f"  ... {left_out} more")
        bar = "#" * max(round(count / most * _BAR), 1 if count else 0)
        lines.append(f"  {name:<{width}}  {count:>7}  {bar}".rstrip())
    return "\n".join(lines)
