"""Checks of instance masks: that there are some, where their boxes are, as large as is said."""

from collections.abc import Iterator, Sequence

import numpy as np

from hortus.vision.data import progress
from hortus.vision.data.checks.findings import Finding
from hortus.vision.data.checks.objects import describe_objects
from hortus.vision.data.checks.splits import some
from hortus.vision.dataloaders.detection.coco_files import read_polygons
from hortus.vision.dataloaders.detection.detection_set import DetectionSet
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.ops.segmentations import crosses_itself, measure_codes

_TOLERANCE = 2.0
"""Pixels that a box may differ from the one around its mask: annotation tools round."""
_AREA_SHARE, _AREA_PIXELS = 0.25, 16
"""What an area may differ from the pixels of its mask. Areas of polygons are not whole pixels,
which small objects feel most."""
_MOST_CORNERS = 3000
"""Polygons with more corners are not looked at: the time grows with their square."""


def mask_faults(name: str, data: DetectionSet) -> Iterator[Finding]:
    """What is wrong with the masks of a data set; nothing where none were read."""
    if data.masks is None or not len(data.masks):
        return
    if data.mask_problems:
        yield some("error", f"{name}: masks that cannot be read", data.mask_problems)
    areas, boxes = measure_codes(data.masks, data.sizes[data.images_of_objects])
    empty = areas == 0
    if np.all(empty):
        yield Finding(
            "error",
            f"{name}: no object has a mask; for a model of boxes alone set "
            "task.model.include_mask=false",
            count=len(empty),
        )
        return
    if np.any(empty):
        what = "objects without a mask, or with one that has no pixels"
        yield some("warning", f"{name}: {what}", describe_objects(data, empty))
    told = data.boxes
    apart = np.any((boxes[:, 2:] <= told[:, :2]) | (boxes[:, :2] >= told[:, 2:]), axis=1) & ~empty
    if np.any(apart):
        what = "masks that lie outside of their boxes"
        yield some("error", f"{name}: {what}", describe_objects(data, apart))
    beyond = np.any(
        (boxes[:, :2] < told[:, :2] - _TOLERANCE) | (boxes[:, 2:] > told[:, 2:] + _TOLERANCE),
        axis=1,
    )
    beyond &= ~empty & ~apart
    if np.any(beyond):
        what = "masks that reach beyond their boxes, and are cut there"
        yield some("warning", f"{name}: {what}", describe_objects(data, beyond))
    sides, seen = told[:, 2:] - told[:, :2], boxes[:, 2:] - boxes[:, :2]
    loose = np.any(seen < 0.5 * sides - _TOLERANCE, axis=1) & ~empty & ~apart & ~beyond
    if np.any(loose):
        what = "boxes that are more than twice as long as their masks"
        yield some("warning", f"{name}: {what}", describe_objects(data, loose))
    difference = np.abs(data.areas - areas)
    differs = (difference > np.maximum(_AREA_SHARE * areas, _AREA_PIXELS)) & (data.areas >= 0)
    differs &= ~empty
    if np.any(differs):
        texts = [
            f"{text}: area {told_area:g}, but {pixels:g} pixels"
            for text, told_area, pixels in zip(
                describe_objects(data, differs), data.areas[differs], areas[differs], strict=True
            )
        ]
        yield some("warning", f"{name}: areas that are not those of the masks", texts)
    sizes = np.array([len(code) for code in data.masks])
    yield Finding(
        "note",
        f"{name}: half of the masks cover less than {np.median(areas[~empty]):.0f} pixels; all of "
        f"them take {sizes.sum() / 1e6:.1f} MB in memory, those of one image "
        f"{data.mask_bytes.max() / 1e3:.1f} kB at most",
    )


def polygon_faults(name: str, input_path: str | Sequence[str]) -> Iterator[Finding]:
    """Polygons of COCO files that cross themselves: parts of them count as outside."""
    crossing = []
    try:
        for where, polygons in progress.track(read_polygons(input_path), "polygons", None):
            try:
                is_crossing = any(
                    len(each) % 2 == 0 and len(each) <= 2 * _MOST_CORNERS and crosses_itself(each)
                    for each in polygons
                )
            except (TypeError, ValueError):
                continue  # it is among the masks that cannot be read
            if is_crossing:
                crossing.append(where)
    except DataError:
        return  # it was named when the data was read
    if crossing:
        yield some("warning", f"{name}: polygons that cross themselves", crossing)
