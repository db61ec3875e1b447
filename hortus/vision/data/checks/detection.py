"""Checks of detection data: files, sizes, boxes, masks, categories, copies."""

from collections.abc import Iterator, Sequence

import numpy as np

from hortus.vision.configs import detection as configs
from hortus.vision.data.checks.findings import Finding, Level
from hortus.vision.data.checks.masks import mask_faults, polygon_faults
from hortus.vision.data.checks.objects import describe_objects
from hortus.vision.data.checks.splits import copies_across, named_splits, no_data, some
from hortus.vision.data.detection_images import LookedAt, look_at
from hortus.vision.dataloaders.detection.checks import size_conflict
from hortus.vision.dataloaders.detection.classes import number_classes
from hortus.vision.dataloaders.detection.detection_set import DetectionSet
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources.factory import by_name
from hortus.vision.evaluation.coco_annotations import read_annotations

_UNBALANCED = 50
"""Objects of the largest class over those of the smallest, from which on it is worth a warning."""
_SMALL = 4.0
"""Sides, in pixels of the model's input, that are hard to find."""


def check(task_config: configs.DetectionTask) -> Iterator[Finding]:
    """Reads all images of training and validation once and yields what is wrong, then facts."""
    chosen = named_splits(task_config)
    if not chosen:
        yield no_data("a COCO JSON, and task.train_data.file_type=coco")
    class_names: tuple[str, ...] = ()
    seen: dict[str, dict[bytes, str]] = {}
    for split, params in chosen.items():
        try:
            sets = look_at(params, task_config)
        except DataError as error:
            yield Finding("error", f"{split}: {error}")
            continue
        seen[split] = {}
        if split == "validation_data" and task_config.annotation_file:
            yield from _annotation_faults(task_config.annotation_file, sets)
        for part, looked_at in sets.items():
            name = f"{split} {part}".strip()
            yield from _image_faults(name, looked_at, seen[split])
            yield from _box_faults(name, looked_at.data)
            yield from mask_faults(name, looked_at.data)
            names, findings = _class_faults(name, looked_at, task_config, class_names)
            yield from findings
            class_names = class_names or names
            yield from _facts(name, looked_at.data, params, task_config)
        if task_config.model.learns_masks and params.file_type == "coco" and params.input_path:
            for part, path in by_name(params.input_path).items():
                yield from polygon_faults(f"{split} {part}".strip(), path)
    yield from copies_across(seen)


# ---- images ---------------------------------------------------------------------------------


def _image_faults(name: str, looked_at: LookedAt, seen: dict[bytes, str]) -> Iterator[Finding]:
    """Takes note of where images are, by their pixels."""
    data = looked_at.data
    if not len(data):
        yield Finding("error", f"{name}: there are no images")
    missing, unreadable, conflicts, copies = [], [], [], []
    for path, told, look in zip(data.paths, data.sizes.tolist(), looked_at.looks, strict=True):
        if look.is_missing:
            missing.append(path)
        elif look.problem:
            unreadable.append(f"{path}: {look.problem}")
        else:
            if look.size != tuple(told):
                conflicts.append(size_conflict(data.origin, path, told, look.size))
            first = seen.setdefault(look.digest, path)
            if first != path:
                copies.append(f"{path} = {first}")
    if missing:
        yield some("error", f"{name}: images that are not there", missing)
    if unreadable:
        yield some("error", f"{name}: images that cannot be read", unreadable)
    if conflicts:
        yield some("error", f"{name}: images that have not the size told", conflicts)
    if copies:
        yield some("warning", f"{name}: images that are there more than once", copies)


def _annotation_faults(path: str, sets: dict[str, LookedAt]) -> Iterator[Finding]:
    """The file that evaluation goes by, beside the data that is evaluated."""
    try:
        truth = read_annotations(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield Finding("error", f"annotation_file {path} cannot be read: {error}")
        return
    ids = np.concatenate([looked_at.data.image_ids for looked_at in sets.values()])
    known = np.isin(ids, truth.image_ids)
    if not np.all(known):
        yield Finding(
            "error" if not np.any(known) else "warning",
            f"validation_data: {int(np.sum(~known))} of {len(ids)} images are not in "
            f"annotation_file {path}, by their ids, so that they cannot be evaluated",
            count=int(np.sum(~known)),
        )


# ---- boxes ----------------------------------------------------------------------------------


def _box_faults(name: str, data: DetectionSet) -> Iterator[Finding]:
    boxes = data.boxes
    if not len(boxes):
        yield Finding("error", f"{name}: no image has an object")
        return
    if np.nanmax(np.abs(boxes), initial=0.0) <= 1.0 and np.max(data.sizes) > 1:
        yield Finding(
            "error",
            f"{name}: all boxes lie between 0 and 1: they seem to be shares of the image "
            "size, where pixels are expected",
            count=len(boxes),
        )
        return
    broken = ~np.all(np.isfinite(boxes), axis=1)
    reversed_ = np.any(boxes[:, 2:] < boxes[:, :2], axis=1) & ~broken
    empty = data.is_empty() & ~reversed_ & ~broken
    outside = data.is_outside() & ~broken
    faults: tuple[tuple[Level, str, np.ndarray], ...] = (
        ("error", "boxes that are no numbers", broken),
        ("error", "boxes whose end is before their begin (negative width or height)", reversed_),
        ("warning", "boxes without an area, which are left out of training", empty),
        ("warning", "boxes that reach beyond their image, and are cut there", outside),
    )
    for level, what, mask in faults:
        if np.any(mask):
            yield some(level, f"{name}: {what}", describe_objects(data, mask))
    keys = np.column_stack([data.images_of_objects, data.categories, boxes])
    _, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    if np.any(counts > 1):
        mask = np.zeros(len(boxes), bool)
        mask[first[counts > 1]] = True
        yield some(
            "warning", f"{name}: boxes that are there more than once", describe_objects(data, mask)
        )


# ---- classes --------------------------------------------------------------------------------


def _class_faults(
    name: str, looked_at: LookedAt, task: configs.DetectionTask, class_names: Sequence[str]
) -> tuple[tuple[str, ...], list[Finding]]:
    """The names of the classes, and what is wrong with them."""
    data = looked_at.data
    findings = []
    unknown = data.categories < 0
    if np.any(unknown):
        findings.append(
            some("error", f"{name}: objects of unknown categories", describe_objects(data, unknown))
        )
    ids = data.category_ids
    if not ids:
        return (), findings
    if not looked_at.has_class_numbers and ids != tuple(range(1, len(ids) + 1)):
        findings.append(
            Finding(
                "note",
                f"{name}: category ids are not 1 to {len(ids)} but {ids[0]} to {ids[-1]}, with "
                "gaps or another begin; classes are numbered in their order",
            )
        )
    wanted = task.model.num_classes
    if not wanted:
        findings.append(
            Finding("error", f"{name}: set task.model.num_classes={len(ids) + 1}; it is 0")
        )
    if looked_at.has_class_numbers:
        if ids[0] < 1 or (wanted and ids[-1] >= wanted):
            outside = [one for one in ids if one < 1 or one >= wanted]
            findings.append(
                Finding(
                    "error",
                    f"{name}: classes {', '.join(map(str, outside[:10]))} are not among the "
                    f"model's 1 to {wanted - 1}; 0 is the background",
                    count=len(outside),
                )
            )
        return (), findings
    try:
        classes = number_classes(ids, data.category_names, wanted, class_names, data.origin)
    except DataError as error:
        return (), [*findings, Finding("error", f"{name}: {error}")]
    if wanted and len(classes.names) < wanted - 1:
        findings.append(
            Finding(
                "warning",
                f"{name}: the data has {len(classes.names)} classes, the model {wanted - 1} beside "
                f"the background: task.model.num_classes={len(classes.names) + 1} would fit",
            )
        )
    counts = np.bincount(data.categories[~unknown], minlength=len(ids))
    unused = [data.category_names[place] for place in np.flatnonzero(counts == 0)]
    if unused:
        findings.append(some("warning", f"{name}: categories without any object", unused))
    used = counts[counts > 0]
    if len(used) and used.max() >= _UNBALANCED * used.min():
        findings.append(
            Finding(
                "warning",
                f"{name}: the largest category has {used.max()} objects, the smallest {used.min()}",
            )
        )
    return classes.names, findings


# ---- facts ----------------------------------------------------------------------------------


def _facts(
    name: str, data: DetectionSet, params: configs.DataConfig, task: configs.DetectionTask
) -> Iterator[Finding]:
    yield Finding(
        "note",
        f"{name}: {len(data)} images with {len(data.boxes)} objects of "
        f"{len(np.unique(data.categories))} categories; crowds {int(data.is_crowd.sum())}, "
        f"difficult {int(data.is_difficult.sum())}",
        count=len(data),
    )
    without = [data.paths[number] for number in np.flatnonzero(data.counts == 0)]
    if without:
        yield some(
            "note", f"{name}: images without objects, kept as examples of background", without
        )
    most = params.parser.max_num_instances
    over = np.flatnonzero(data.counts > most)
    if len(over):
        yield some(
            "warning",
            f"{name}: images with more objects than parser.max_num_instances={most}, up to "
            f"{data.counts.max()}; training leaves the others out",
            [f"{data.paths[number]}: {data.counts[number]}" for number in over],
        )
    if not len(data.boxes):
        return
    known = data.categories >= 0
    counts = np.bincount(data.categories[known], minlength=len(data.category_names))
    lines = [
        f"  {title:<{max(map(len, data.category_names))}}  {count:>7}"
        for title, count in zip(data.category_names, counts, strict=True)
    ]
    yield Finding("note", "\n".join([f"{name}: objects per category", *lines[:40]]))
    yield from _size_facts(name, data, task)


def _size_facts(name: str, data: DetectionSet, task: configs.DetectionTask) -> Iterator[Finding]:
    sound = ~data.is_empty()
    wanted = [side for side in task.model.input_size[:2] if side]
    if len(wanted) != 2 or not np.any(sound):
        return
    scales = np.min(np.array(wanted) / np.maximum(data.sizes, 1), axis=1)
    sides = (data.boxes[:, 2:] - data.boxes[:, :2])[sound]
    sides = sides * scales[data.images_of_objects[sound], None]
    areas = np.sqrt(sides[:, 0] * sides[:, 1])
    low, middle, high = np.percentile(areas, [5, 50, 95])
    yield Finding(
        "note",
        f"{name}: in the model's {wanted[0]} x {wanted[1]} pixels, objects have sides of "
        f"{low:.0f} (5 %), {middle:.0f} (half), {high:.0f} pixels (95 %)",
    )
    small = int(np.sum(np.min(sides, axis=1) < _SMALL))
    if small > 0.01 * len(sides):
        yield Finding(
            "warning",
            f"{name}: {small} of {len(sides)} objects have a side of less than {_SMALL:g} "
            "pixels in the model's input: a larger task.model.input_size would show them",
            count=small,
        )
