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

CLASSES = ("circle", "square", "triangle", "star")
_SCALE = 4
"""Shapes are drawn larger by this and shrunk, for smooth edges."""
_MIN_VISIBLE = 0.6
"""No object hides more of another than leaves this share of it to see."""


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
    """Outline of each object [corners, 2] as (x, y), hidden parts included."""

    @property
    def boxes(self) -> np.ndarray:
        """Box of the visible part of each object [n, 4]: ymin, xmin, ymax, xmax, in pixels."""
        boxes = []
        for mask in self.masks:
            rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
            boxes.append((rows[0], columns[0], rows[-1] + 1, columns[-1] + 1))
        return np.array(boxes, np.float32).reshape(-1, 4)

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
) -> Scene:
    """Draws a scene.

    Args:
        generator: where its randomness comes from.
        size: height and width in pixels.
        max_objects: most objects; there is at least one. One that would hide another is left out.
        label: class of all objects; None for any.
        radius: smallest and largest distance of a corner from the middle, in units of `size`.
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
    noise = generator.normal(0, 6, image.shape)
    return Scene(
        image=np.clip(np.rint(image + noise), 0, 255).astype(np.uint8),
        labels=np.array([shape.label for shape in shapes], np.int32),
        masks=np.array(masks, bool).reshape(-1, size, size),
        polygons=[shape.outline for shape in shapes],
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
) -> None:
    """Writes scenes for detection and segmentation.

    `root`/images/{train,val}/*.png, `root`/masks/{train,val}/*.png (0 background, then classes) and
    `root`/{train,val}.json (COCO: boxes and polygons, categories from 1).
    """
    for split, count, start in (("train", num_train, seed), ("val", num_val, seed + 1)):
        for kind in ("images", "masks"):
            os.makedirs(os.path.join(root, kind, split), exist_ok=True)
        images: list[dict] = []
        annotations: list[dict] = []
        for index, scene in enumerate(scenes(count, start, size=size), start=1):
            name = f"{split}/scene_{index:05d}.png"
            Image.fromarray(scene.image).save(os.path.join(root, "images", name))
            Image.fromarray(scene.class_mask).save(os.path.join(root, "masks", name))
            images.append({"id": index, "file_name": name, "height": size, "width": size})
            for annotation in _annotations(scene):
                number = len(annotations) + 1
                annotations.append({"id": number, "image_id": index, **annotation})
        categories = [{"id": i, "name": name} for i, name in enumerate(CLASSES, start=1)]
        content = {"images": images, "annotations": annotations, "categories": categories}
        with open(os.path.join(root, f"{split}.json"), "w", encoding="utf-8") as file:
            json.dump(content, file)


def _annotations(scene: Scene) -> Iterator[dict]:
    rows = zip(scene.labels, scene.boxes, scene.masks, scene.polygons, strict=True)
    for label, (top, left, bottom, right), mask, polygon in rows:
        yield {
            "category_id": int(label) + 1,
            "bbox": [float(left), float(top), float(right - left), float(bottom - top)],
            "area": int(mask.sum()),
            "iscrowd": 0,
            "segmentation": [[round(float(value), 2) for value in polygon.ravel()]],
        }
