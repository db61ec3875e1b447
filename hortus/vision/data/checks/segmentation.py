"""Checks of segmentation data: unreadable files, sizes, class numbers, ignored pixels, balance."""

import collections
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.data import progress
from hortus.vision.data.checks.findings import Finding
from hortus.vision.data.checks.splits import (
    copies_across,
    named_splits,
    no_data,
    some,
)
from hortus.vision.data.raw_images import class_text, pixel_digest
from hortus.vision.data.raw_masks import RawMask, RawMasks
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.segmentation import mask_files
from hortus.vision.dataloaders.sources.factory import by_name

_UNBALANCED = 30
"""Pixels of the largest class over those of the smallest, from which on it is worth a warning."""
_MUCH_IGNORED = 0.5
_ROWS = 60
"""Rows of the table of classes at most."""


@dataclasses.dataclass
class _Split:
    """What one pass over a split has seen."""

    name: str
    class_names: tuple[str, ...] = ()
    count: int = 0
    unreadable: list[str] = dataclasses.field(default_factory=list)
    damage: str = ""
    outside: list[str] = dataclasses.field(default_factory=list)
    outside_numbers: set[int] = dataclasses.field(default_factory=set)
    empty: list[str] = dataclasses.field(default_factory=list)
    """Images none of whose pixels count."""
    pixels: "collections.Counter[int]" = dataclasses.field(default_factory=collections.Counter)
    """Number of pixels by the number in the mask."""
    images: "collections.Counter[int]" = dataclasses.field(default_factory=collections.Counter)
    """Number of images that show a class."""
    sizes: list[tuple[int, ...]] = dataclasses.field(default_factory=list)
    seen: dict[bytes, list[str]] = dataclasses.field(default_factory=dict)
    """Where the images with these pixels are."""


def check(task_config: configs.SemanticSegmentationTask) -> Iterator[Finding]:
    """Reads all images and masks once and yields what is wrong, then facts."""
    chosen = named_splits(task_config)
    if not chosen:
        yield no_data(
            "a folder `images` beside a folder `masks`, and task.train_data.file_type=masks"
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
        yield from _unused_masks(name, params)
        yield from _facts(split, task_config)
    places = {split.name: {key: at[0] for key, at in split.seen.items()} for split in splits}
    yield from copies_across(places)


def _read(name: str, params: configs.DataConfig, task: configs.SemanticSegmentationTask) -> _Split:
    masks = RawMasks(params, task)
    split = _Split(name, masks.info.class_names)
    try:
        for each in progress.track(masks, f"reading {name}", masks.info.num_examples):
            _take_in(split, each, task)
    except DataError as error:
        split.damage = str(error)
    return split


def _take_in(split: _Split, each: RawMask, task: configs.SemanticSegmentationTask) -> None:
    split.count += 1
    if each.problem or each.pixels is None or each.mask is None:
        split.unreadable.append(f"{each.where}: {each.problem}")
        return
    split.sizes.append(each.mask.shape)
    split.seen.setdefault(pixel_digest(each.pixels), []).append(each.where)
    if task.losses.gt_is_matting_map:
        return
    numbers, counts = np.unique(each.mask, return_counts=True)
    found = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    split.pixels.update(found)
    split.images.update(found.keys())
    wanted, ignored = task.model.num_classes, task.losses.ignore_label
    outside = [
        number for number in found if number != ignored and not 0 <= number < (wanted or number + 1)
    ]
    if outside:
        split.outside_numbers.update(outside)
        split.outside.append(f"{each.where}: {', '.join(map(str, outside[:8]))}")
    if set(found) <= {ignored}:
        split.empty.append(each.where)


# ---- faults ---------------------------------------------------------------------------------


def _faults(split: _Split, task: configs.SemanticSegmentationTask) -> Iterator[Finding]:
    name, wanted, ignored = split.name, task.model.num_classes, task.losses.ignore_label
    if split.damage:
        yield Finding("error", f"{name}: a file is damaged: {split.damage}")
    if split.unreadable:
        yield some("error", f"{name}: images with masks that cannot be used", split.unreadable)
    known = [number for number in split.pixels if number != ignored]
    if not wanted:
        count = max(len(split.class_names), max(known, default=-1) + 1)
        yield Finding("error", f"{name}: set task.model.num_classes={count}; it is 0")
    elif split.outside:
        numbers = ", ".join(map(str, sorted(split.outside_numbers)[:12]))
        yield some(
            "error",
            f"{name}: masks with numbers that are no class: {numbers}. The classes are 0 to "
            f"{wanted - 1}, and task.losses.ignore_label is {ignored}; images",
            split.outside,
        )
    if wanted and split.class_names and len(split.class_names) != wanted:
        level: Any = "error" if len(split.class_names) > wanted else "warning"
        yield Finding(
            level,
            f"{name}: the data names {len(split.class_names)} classes, and "
            f"task.model.num_classes is {wanted}",
        )
    if split.empty:
        yield some("warning", f"{name}: images none of whose pixels count", split.empty)
    missing = [number for number in range(wanted) if not split.pixels[number]]
    if missing and split.pixels:
        names = [class_text([number], split.class_names) for number in missing]
        yield some("warning", f"{name}: classes that no mask shows", names)
    copies = [places for places in split.seen.values() if len(places) > 1]
    if copies:
        shown = [" = ".join(places) for places in copies]
        yield some("warning", f"{name}: images that are there more than once", shown)


def _unused_masks(name: str, params: configs.DataConfig) -> Iterator[Finding]:
    """Masks that no image has, which hints at images that are missing."""
    if params.file_type != "masks" or params.tfds_name:
        return
    mask_paths = by_name(params.mask_path)
    for key, path in by_name(params.input_path).items():
        unused = mask_files.unused_masks(path, mask_paths.get(key))
        if unused:
            yield some("warning", f"{name}: masks without an image", unused)


# ---- facts ----------------------------------------------------------------------------------


def _facts(split: _Split, task: configs.SemanticSegmentationTask) -> Iterator[Finding]:
    yield Finding("note", f"{split.name}: {split.count} images", count=split.count)
    if split.sizes:
        (low_y, low_x), (high_y, high_x) = np.min(split.sizes, axis=0), np.max(split.sizes, axis=0)
        yield Finding(
            "note", f"{split.name}: heights {low_y} to {high_y}, widths {low_x} to {high_x}"
        )
    ignored, total = task.losses.ignore_label, sum(split.pixels.values())
    if not total:
        return
    share = split.pixels[ignored] / total
    level: Any = "warning" if share > _MUCH_IGNORED else "note"
    yield Finding(level, f"{split.name}: {share:.1%} of the pixels do not count ({ignored})")
    counts = {number: n for number, n in sorted(split.pixels.items()) if number != ignored}
    if not counts:
        return
    yield Finding("note", f"{split.name}: pixels per class\n{_table(counts, split)}")
    most, fewest = max(counts.values()), min(counts.values())
    if split.name == "train_data" and most >= _UNBALANCED * fewest:
        yield Finding(
            "warning",
            f"{split.name}: the largest class has {most / fewest:.0f} times the pixels of the "
            "smallest. To make up for it, by the median of the classes' shares: "
            f"task.losses.class_weights={_weights(counts, task.model.num_classes)}",
        )


def _table(counts: dict[int, int], split: _Split) -> str:
    names = {number: class_text([number], split.class_names) for number in counts}
    width, total = max(map(len, names.values())), sum(counts.values())
    rows = list(counts.items())[:_ROWS]
    lines = [f"  {'class':<{width}}  pixels  images"]
    lines += [
        f"  {names[number]:<{width}}  {count / total:6.1%}  {split.images[number]:>6}"
        for number, count in rows
    ]
    if len(counts) > _ROWS:
        lines.append(f"  ... {len(counts) - _ROWS} more")
    return "\n".join(lines)


def _weights(counts: dict[int, int], num_classes: int) -> list[float]:
    """Weights that bring classes to the middle one's share; at most 10, since more is noise."""
    middle = float(np.median(list(counts.values())))
    return [
        round(min(middle / counts[number], 10.0), 2) if number in counts else 1.0
        for number in range(num_classes or max(counts) + 1)
    ]
