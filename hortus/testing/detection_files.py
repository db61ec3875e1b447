"""Small detection data sets on the disk, for tests."""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

NAMES = ("ant", "bee", "cat")
SIZES = ((24, 32), (40, 30), (32, 32), (20, 36))
"""Height and width of the images."""
OBJECTS: tuple[tuple[tuple[int, Sequence[float]], ...], ...] = (
    ((1, (2, 3, 10, 12)), (2, (12, 5, 30, 20)), (1, (0, 0, 32, 24))),
    ((3, (5, 5, 25, 35)),),
    (),
    ((2, (1, 1, 20, 10)), (3, (10, 4, 36, 20))),
)
"""Class, and x0, y0, x1, y1 of the objects of each image; one image has none."""


def write_images(folder: pathlib.Path) -> list[str]:
    """Writes an image per size; bright in its boxes, dark elsewhere. Returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for number, (height, width) in enumerate(SIZES):
        image = np.full((height, width, 3), 30, np.uint8)
        for class_number, (x0, y0, x1, y1) in OBJECTS[number]:
            image[int(y0) : int(y1), int(x0) : int(x1), class_number - 1] = 230
        name = f"{number}.png"
        (folder / name).write_bytes(tf.io.encode_png(image).numpy())
        names.append(name)
    return names


def coco_content(
    names: Sequence[str], ids: Sequence[int] = (1, 2, 3), **extra: Any
) -> dict[str, Any]:
    """What a COCO JSON says about these images; `ids` are those of the categories."""
    annotations: list[dict[str, Any]] = [
        {
            "id": 10 * image + row + 1,
            "image_id": image + 100,
            "category_id": ids[number - 1],
            "bbox": [x0, y0, x1 - x0, y1 - y0],
            "area": (x1 - x0) * (y1 - y0) / 2,
            "iscrowd": int((image, row) == (0, 2)),
        }
        for image, objects in enumerate(OBJECTS)
        for row, (number, (x0, y0, x1, y1)) in enumerate(objects)
    ]
    content = {
        "images": [
            {"id": image + 100, "file_name": name, "height": height, "width": width}
            for image, (name, (height, width)) in enumerate(zip(names, SIZES, strict=True))
        ],
        # Those of one image need not stand together.
        "annotations": sorted(annotations, key=lambda each: (each["id"] % 10, -each["image_id"])),
        "categories": [{"id": one, "name": name} for one, name in zip(ids, NAMES, strict=True)],
    }
    return {**content, **extra}


def write_coco(folder: pathlib.Path, **options: Any) -> str:
    """Writes `folder`/train.json with its images, and returns its path."""
    names = write_images(folder / "images")
    path = folder / "train.json"
    path.write_text(json.dumps(coco_content(names, **options)))
    return str(path)


def change_coco(path: str, change: Any) -> str:
    """Lets `change` alter the content of a COCO JSON."""
    file = pathlib.Path(path)
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    return path


def write_voc(folder: pathlib.Path, lists: Mapping[str, Sequence[int]] | None = None) -> str:
    """Writes a Pascal VOC folder; the last object of each image is difficult."""
    names = write_images(folder / "JPEGImages")
    (folder / "Annotations").mkdir()
    (folder / "ImageSets" / "Main").mkdir(parents=True)
    for number, (name, (height, width)) in enumerate(zip(names, SIZES, strict=True)):
        objects = "".join(
            f"<object><name>{NAMES[kind - 1]}</name>"
            f"<difficult>{int(row == len(OBJECTS[number]) - 1)}</difficult>"
            f"<bndbox><xmin>{x0 + 1}</xmin><ymin>{y0 + 1}</ymin><xmax>{x1}</xmax>"
            f"<ymax>{y1}</ymax></bndbox></object>"
            for row, (kind, (x0, y0, x1, y1)) in enumerate(OBJECTS[number])
        )
        text = (
            f"<annotation><filename>{name}</filename><size><width>{width}</width>"
            f"<height>{height}</height><depth>3</depth></size>{objects}</annotation>"
        )
        (folder / "Annotations" / f"{number}.xml").write_text(text)
    for name, numbers in (lists or {}).items():
        path = folder / "ImageSets" / "Main" / f"{name}.txt"
        path.write_text("".join(f"{number}\n" for number in numbers))
    return str(folder)


def write_records(path: pathlib.Path, **changes: Any) -> str:
    """Writes the same as records; `changes` replace features of all of them, by their keys."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number, (height, width) in enumerate(SIZES):
            image = np.full((height, width, 3), 90, np.uint8)
            boxes = np.array([box for _, box in OBJECTS[number]], float).reshape(-1, 4)
            boxes = boxes / [width, height, width, height]
            features: dict[str, Any] = {
                "image/encoded": [tf.io.encode_png(image).numpy()],
                "image/source_id": [str(number + 100).encode()],
                "image/height": [height],
                "image/width": [width],
                "image/object/class/label": [kind for kind, _ in OBJECTS[number]],
                "image/object/class/text": [
                    NAMES[kind - 1].encode() for kind, _ in OBJECTS[number]
                ],
            }
            for edge, column in zip(("xmin", "ymin", "xmax", "ymax"), boxes.T, strict=True):
                features[f"image/object/bbox/{edge}"] = column.tolist()
            for key, change in changes.items():
                name = key.replace("__", "/")
                features[name] = change(features.get(name, []), number)
            writer.write(_example(features))
    return str(path)


def _example(features: Mapping[str, Sequence[Any]]) -> bytes:
    kinds = {}
    for name, values in features.items():
        if any(isinstance(value, bytes) for value in values):
            kind = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif any(isinstance(value, float) for value in values):
            kind = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        else:
            kind = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        if values:
            kinds[name] = kind
    return tf.train.Example(features=tf.train.Features(feature=kinds)).SerializeToString()
