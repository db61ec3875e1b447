"""Sample data for every task: drawn scenes of shapes, the same for the same seed.

    shapes.write_scenes("/tmp/scenes", num_train=200, num_val=40)      # boxes, masks, COCO files
    shapes.write_folders("/tmp/shapes", num_train=100, num_val=20)     # a folder per class

A scene knows the class, the box, the outline and the mask of each of its objects, so that it serves
classification, detection, instance and semantic segmentation alike.
"""

import dataclasses
import json
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from hortus.vision.ops.segmentations import encode_bitmap

CLASSES = ("circle", "square", "triangle", "star")
_SCALE = 4
"""Shapes are drawn larger by this and shrunk, for smooth edges."""
_MIN_VISIBLE = 0.6
"""No object hides more of another than leaves this share of it to see."""
_CROWD, _CROWD_RADIUS, _MEMBER_RADIUS = (9, 16), 0.13, (0.035, 0.06)
"""Shapes in a crowd, how far from its middle they are, and how large, in units of the size."""
_PER_CLASS = 1000
"""In the images of instance numbers: a number's class, times this, plus a number of its own."""


@dataclasses.dataclass(frozen=True)
class Shape:
    """One object of a scene, in pixels."""

    label: int
    """Index in CLASSES."""
    outline: np.ndarray
    """Corners [n, 2] as (x, y)."""
    colour: tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class Scene:
    """A picture and what is in it."""

    image: np.ndarray
    """uint8 [height, width, 3]."""
    labels: np.ndarray
    """Class of each object [n], index in CLASSES."""
    masks: np.ndarray
    """Visible pixels of each object, bool [n, height, width]."""
    polygons: list[np.ndarray]
    """Outline of each object [corners, 2] as (x, y), hidden parts included; of a crowd its box."""
    is_crowd: np.ndarray
    """Which are many that nobody told apart, bool [n]."""

    @property
    def boxes(self) -> np.ndarray:
        """Box of the visible part of each object [n, 4]: ymin, xmin, ymax, xmax, in pixels."""
        boxes = []
        for mask in self.masks:
            rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
            boxes.append((rows[0], columns[0], rows[-1] + 1, columns[-1] + 1))
        return np.array(boxes, np.float32).reshape(-1, 4)

    @property
    def is_whole(self) -> np.ndarray:
        """Which objects are seen as their outline says, with no part hidden, bool [n]."""
        size = self.image.shape[0]
        wholes = [_cover(outline, size) > 0.5 for outline in self.polygons]
        same = [np.array_equal(m, w) for m, w in zip(self.masks, wholes, strict=True)]
        return np.array(same, bool) & ~self.is_crowd

    @property
    def instance_numbers(self) -> np.ndarray:
        """uint16 [height, width]: 0 for the background, else 1000 * (1 + the class) + a number."""
        numbers = np.zeros(self.image.shape[:2], np.uint16)
        for place, (label, visible) in enumerate(zip(self.labels, self.masks, strict=True)):
            numbers[visible] = (label + 1) * _PER_CLASS + place
        return numbers

    @property
    def class_mask(self) -> np.ndarray:
        """uint8 [height, width]: 0 for the background, else 1 + the class."""
        mask = np.zeros(self.image.shape[:2], np.uint8)
        for label, visible in zip(self.labels, self.masks, strict=True):
            mask[visible] = label + 1
        return mask


def draw_scene(
    generator: np.random.Generator,
    size: int = 128,
    max_objects: int = 5,
    label: "int | None" = None,
    radius: tuple[float, float] = (0.1, 0.24),
    crowd: bool = False,
) -> Scene:
    """Draws a scene.

    Args:
        generator: where its randomness comes from.
        size: height and width in pixels.
        max_objects: most objects; there is at least one. One that would hide another is left out.
        label: class of all objects; None for any.
        radius: smallest and largest distance of a corner from the middle, in units of `size`.
        crowd: add a heap of small shapes of one class, unless it would hide another object.
    """
    image = _background(generator, size)
    shapes: list[Shape] = []
    masks: list[np.ndarray] = []
    for _ in range(int(generator.integers(1, max_objects + 1))):
        shape = _random_shape(generator, size, image, label, radius)
        cover = _cover(shape.outline, size)
        mask = cover > 0.5
        left = [other & ~mask for other in masks]
        wholes = [_cover(former.outline, size) > 0.5 for former in shapes]
        if any(
            seen.sum() < _MIN_VISIBLE * all_.sum() for seen, all_ in zip(left, wholes, strict=True)
        ):
            continue
        image = image + cover[..., None] * (np.array(shape.colour) - image)
        shapes, masks = [*shapes, shape], [*left, mask]
    is_crowd = [False] * len(shapes)
    if crowd:
        heap, cover, colour = _draw_crowd(generator, size, image, label)
        mask = cover > 0.5
        left = [other & ~mask for other in masks]
        wholes = [_cover(former.outline, size) > 0.5 for former in shapes]
        if all(
            seen.sum() >= _MIN_VISIBLE * all_.sum() for seen, all_ in zip(left, wholes, strict=True)
        ):
            image = image + cover[..., None] * (colour - image)
            shapes, masks, is_crowd = [*shapes, heap], [*left, mask], [*is_crowd, True]
    noise = generator.normal(0, 6, image.shape)
    return Scene(
        image=np.clip(np.rint(image + noise), 0, 255).astype(np.uint8),
        labels=np.array([shape.label for shape in shapes], np.int32),
        masks=np.array(masks, bool).reshape(-1, size, size),
        polygons=[shape.outline for shape in shapes],
        is_crowd=np.array(is_crowd, bool),
    )


def scenes(count: int, seed: int, **options: Any) -> Iterator[Scene]:
    """`count` scenes; each depends on the seed and its number alone."""
    for index in range(count):
        yield draw_scene(np.random.default_rng([seed, index]), **options)


# ---- drawing --------------------------------------------------------------------------------


def _background(generator: np.random.Generator, size: int) -> np.ndarray:
    """A gradient between two muted colours, float [size, size, 3]."""
    first, second = generator.uniform(40, 215, (2, 3))
    angle = generator.uniform(0, 2 * math.pi)
    y, x = np.mgrid[0:size, 0:size] / max(size - 1, 1) - 0.5
    along = (x * math.cos(angle) + y * math.sin(angle) + 0.71) / 1.42
    return first + along[..., None] * (second - first)


def _random_shape(
    generator: np.random.Generator,
    size: int,
    image: np.ndarray,
    label: "int | None",
    radii: tuple[float, float],
) -> Shape:
    label = int(generator.integers(len(CLASSES))) if label is None else label
    radius = size * generator.uniform(*radii)
    centre = generator.uniform(radius, size - radius, 2)
    outline = centre + radius * _unit_outline(label, generator.uniform(0, 2 * math.pi))
    behind = image[int(centre[1]), int(centre[0])]
    colour = generator.uniform(0, 255, 3)
    while np.abs(colour - behind).sum() < 180:  # it has to stand out
        colour = generator.uniform(0, 255, 3)
    return Shape(label, outline, tuple(int(value) for value in colour))  # type: ignore[arg-type]


def _draw_crowd(
    generator: np.random.Generator, size: int, image: np.ndarray, label: "int | None"
) -> tuple[Shape, np.ndarray, np.ndarray]:
    """Many small shapes in a heap: as one shape, what they cover, and their colours."""
    first = _random_shape(generator, size, image, label, _MEMBER_RADIUS)
    middle = generator.uniform(0.2 * size, 0.8 * size, 2)
    cover, colour = np.zeros((size, size)), np.zeros((size, size, 3))
    for _ in range(int(generator.integers(*_CROWD))):
        place = middle + generator.normal(0, _CROWD_RADIUS * size / 2, 2)
        radius = size * generator.uniform(*_MEMBER_RADIUS)
        turn = generator.uniform(0, 2 * math.pi)
        member = _cover(place + radius * _unit_outline(first.label, turn), size)
        shade = np.clip(np.array(first.colour) * generator.uniform(0.7, 1.1), 0, 255)
        colour = colour + member[..., None] * (shade - colour)
        cover = np.maximum(cover, member)
    rows, columns = np.flatnonzero(cover.any(axis=1)), np.flatnonzero(cover.any(axis=0))
    left, top, right, bottom = columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
    outline = np.array([(left, top), (right, top), (right, bottom), (left, bottom)], float)
    colour = colour / np.maximum(cover, 1e-6)[..., None]
    return Shape(first.label, outline, first.colour), cover, np.clip(colour, 0, 255)


def _unit_outline(label: int, turn: float) -> np.ndarray:
    name = CLASSES[label]
    corners = {"circle": 40, "square": 4, "triangle": 3, "star": 10}[name]
    angles = turn + np.arange(corners) * 2 * math.pi / corners
    radii = np.where(np.arange(corners) % 2, 0.45, 1.0) if name == "star" else np.ones(corners)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)


def _cover(outline: np.ndarray, size: int) -> np.ndarray:
    """How far each pixel is covered by the outline, 0 to 1 [size, size]."""
    large = Image.new("L", (size * _SCALE, size * _SCALE))
    ImageDraw.Draw(large).polygon([tuple(p) for p in outline * _SCALE], fill=255)
    return np.asarray(large.resize((size, size), Image.Resampling.BOX)) / 255.0


# ---- writing --------------------------------------------------------------------------------


def write_folders(
    root: "str | os.PathLike[str]",
    num_train: int = 100,
    num_val: int = 20,
    size: int = 64,
    seed: int = 0,
) -> None:
    """Writes `root`/{train,val}/<class>/*.png, so many per class: one object per picture."""
    for split, count, start in (("train", num_train, seed), ("val", num_val, seed + 1)):
        for label, name in enumerate(CLASSES):
            folder = os.path.join(root, split, name)
            os.makedirs(folder, exist_ok=True)
            options = {"size": size, "max_objects": 1, "label": label, "radius": (0.22, 0.42)}
            for index, scene in enumerate(scenes(count, start * 100 + label, **options)):
                Image.fromarray(scene.image).save(os.path.join(folder, f"{name}_{index:05d}.png"))


def write_scenes(
    root: "str | os.PathLike[str]",
    num_train: int = 200,
    num_val: int = 40,
    size: int = 128,
    seed: int = 0,
    crowds: bool = False,
) -> None:
    """Writes scenes for detection, instance and semantic segmentation.

    `root`/images/{train,val}/*.png, `root`/masks/{train,val}/*.png (0 background, then classes),
    `root`/instances/{train,val}/*.png (see `Scene.instance_numbers`; the classes are in
    `root`/instances/classes.json) and `root`/{train,val}.json (COCO: boxes, categories from 1,
    polygons of what is seen as a whole, run-lengths of the rest).

    Args:
        root: the folder.
        num_train: of training scenes.
        num_val: of validation scenes.
        size: height and width in pixels.
        seed: of what is drawn.
        crowds: whether every other scene has a crowd, with `iscrowd` and uncompressed run-lengths.
    """
    for split, count, start in (("train", num_train, seed), ("val", num_val, seed + 1)):
        for kind in ("images", "masks", "instances"):
            os.makedirs(os.path.join(root, kind, split), exist_ok=True)
        images: list[dict] = []
        annotations: list[dict] = []
        drawn = (
            draw_scene(np.random.default_rng([start, index]), size, crowd=crowds and index % 2 == 0)
            for index in range(count)
        )
        for index, scene in enumerate(drawn, start=1):
            name = f"{split}/scene_{index:05d}.png"
            Image.fromarray(scene.image).save(os.path.join(root, "images", name))
            Image.fromarray(scene.class_mask).save(os.path.join(root, "masks", name))
            Image.fromarray(scene.instance_numbers).save(os.path.join(root, "instances", name))
            images.append({"id": index, "file_name": name, "height": size, "width": size})
            for annotation in _annotations(scene):
                number = len(annotations) + 1
                annotations.append({"id": number, "image_id": index, **annotation})
        categories = [{"id": i, "name": name} for i, name in enumerate(CLASSES, start=1)]
        content = {"images": images, "annotations": annotations, "categories": categories}
        with open(os.path.join(root, f"{split}.json"), "w", encoding="utf-8") as file:
            json.dump(content, file)
    with open(os.path.join(root, "instances", "classes.json"), "w", encoding="utf-8") as file:
        json.dump(CLASSES, file)


def _annotations(scene: Scene) -> Iterator[dict]:
    for row, (top, left, bottom, right) in enumerate(scene.boxes):
        yield {
            "category_id": int(scene.labels[row]) + 1,
            "bbox": [float(left), float(top), float(right - left), float(bottom - top)],
            "area": int(scene.masks[row].sum()),
            "iscrowd": int(scene.is_crowd[row]),
            "segmentation": _segmentation(scene, row),
        }


def _segmentation(scene: Scene, row: int) -> Any:
    """A polygon where the object is whole, run-lengths where parts are hidden; lists of crowds."""
    mask = scene.masks[row]
    if scene.is_whole[row]:
        return [[round(float(value), 2) for value in scene.polygons[row].ravel()]]
    if not scene.is_crowd[row]:
        return {"size": list(mask.shape), "counts": encode_bitmap(mask).decode()}
    line = np.concatenate([[0], mask.T.reshape(-1), [2]])
    runs = np.diff(np.flatnonzero(np.diff(line)), prepend=0)
    return {"size": list(mask.shape), "counts": runs.tolist()}
