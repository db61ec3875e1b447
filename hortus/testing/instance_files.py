"""Small data sets with instance masks on the disk, for tests: the same in every format."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from hortus.vision.ops.segmentations import encode_bitmap

SIZE = (80, 120)
"""Height and width of the images."""
NAMES = ("corner", "disc", "hook")
"""The class of each object of an image, in their order."""
COLOURS = ((250, 10, 10), (10, 250, 10), (10, 10, 250))


def blobs(number: int) -> np.ndarray:
    """Masks of an image, uint8 [3, *SIZE], which lie apart and look different when mirrored."""
    y, x = np.mgrid[: SIZE[0], : SIZE[1]] + 0.5
    shift = 3 * (number % 8)
    return np.stack(
        [
            (y > 8) & (x > 6) & (y - 8 + (x - 6) * 0.8 < 30 + shift),
            (np.hypot(y - 50, (x - 60) * 0.7) < 18) & ~((y < 50) & (x > 60)),
            (x > 95) & (x < 117) & (y > 10) & ((y < 30) | (x < 104)) & (y < 70 - shift),
        ]
    ).astype(np.uint8)


def box_of(mask: np.ndarray) -> list[int]:
    """x, y, width and height of the pixels of a mask."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return [int(columns[0]), int(rows[0]), int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1]


def write_images(folder: pathlib.Path, count: int = 4) -> list[str]:
    """Writes images whose objects have their colours, and returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        pixels = np.full((*SIZE, 3), 10, np.uint8)
        for mask, colour in zip(blobs(number), COLOURS, strict=True):
            pixels[mask > 0] = colour
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return [f"{number}.png" for number in range(count)]


def write_coco(
    folder: pathlib.Path,
    count: int = 4,
    change: Callable[[dict[str, Any]], None] | None = None,
    uncompressed: bool = False,
) -> str:
    """Writes `folder`/train.json with its images, and returns its path.

    Args:
        folder: to write to.
        count: of images.
        change: alters the content before it is written.
        uncompressed: write run-lengths as lists.
    """
    names = write_images(folder / "images", count)
    annotations = [
        {
            "id": 3 * number + row + 1,
            "image_id": number + 1,
            "category_id": row + 1,
            "bbox": box_of(mask),
            "area": int(mask.sum()),
            "iscrowd": 0,
            "segmentation": {
                "size": list(SIZE),
                "counts": runs_of(mask) if uncompressed else encode_bitmap(mask).decode(),
            },
        }
        for number in range(count)
        for row, mask in enumerate(blobs(number))
    ]
    content = {
        "images": [
            {"id": number + 1, "file_name": name, "height": SIZE[0], "width": SIZE[1]}
            for number, name in enumerate(names)
        ],
        "annotations": annotations,
        "categories": [{"id": i, "name": name} for i, name in enumerate(NAMES, start=1)],
    }
    if change is not None:
        change(content)
    path = folder / "train.json"
    path.write_text(json.dumps(content))
    return str(path)


def runs_of(mask: np.ndarray) -> list[int]:
    """Run-lengths of a mask down its columns, 0 first, as COCO writes them where uncompressed."""
    line = np.r_[0, mask.T.reshape(-1), 2]
    return np.diff(np.flatnonzero(np.diff(line)), prepend=0).tolist()


def write_instance_masks(folder: pathlib.Path, count: int = 4, with_classes: bool = True) -> str:
    """Writes `folder`/images and `folder`/masks, and returns the latter."""
    write_images(folder / "images", count)
    (folder / "masks").mkdir()
    for number in range(count):
        numbers = np.zeros(SIZE, np.uint16)
        for row, mask in enumerate(blobs(number)):
            numbers[mask > 0] = (row + 1) * 1000 + 7 if with_classes else 5 * row + 3
        Image.fromarray(numbers).save(folder / "masks" / f"{number}.png")
    if with_classes:
        (folder / "classes.json").write_text(json.dumps(NAMES))
    return str(folder / "masks")


def write_voc(folder: pathlib.Path, count: int = 4) -> str:
    """Writes a Pascal VOC folder whose last image has no masks, and returns it."""
    write_images(folder / "JPEGImages", count)
    for name in ("Annotations", "SegmentationObject"):
        (folder / name).mkdir()
    for number in range(count):
        objects, numbers = "", np.zeros(SIZE, np.uint8)
        for row, mask in enumerate(blobs(number)):
            x, y, width, height = box_of(mask)
            objects += (
                f"<object><name>{NAMES[row]}</name><bndbox><xmin>{x + 1}</xmin>"
                f"<ymin>{y + 1}</ymin><xmax>{x + width}</xmax><ymax>{y + height}</ymax></bndbox>"
                "</object>"
            )
            numbers[mask > 0] = row + 1
        text = (
            f"<annotation><filename>{number}.png</filename><size><width>{SIZE[1]}</width>"
            f"<height>{SIZE[0]}</height></size>{objects}</annotation>"
        )
        (folder / "Annotations" / f"{number}.xml").write_text(text)
        if number < count - 1:
            numbers[0, 0] = 255  # a border, which is no object
            image = Image.fromarray(numbers, "P")
            image.putpalette([value for place in range(256) for value in (place, 0, 255 - place)])
            image.save(folder / "SegmentationObject" / f"{number}.png")
    return str(folder)
