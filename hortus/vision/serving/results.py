"""The folder that predictions are written to.

predictions.json   a list with the predictions, COCO's results where they are boxes
images.json        every image: its id, file, size, picture, and why it was skipped
pictures/*.png     the images with their predictions drawn
masks/*.png        class numbers as pixels, with a palette, where they are masks
"""

import json
import os
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
from PIL import Image

from hortus.core import atomic_file
from hortus.core.checkpoints import atomic_folder
from hortus.vision.serving.images import FoundImage
from hortus.vision.serving.predictor import Result

PREDICTIONS, IMAGES, PICTURES = "predictions.json", "images.json", "pictures"
_SMALL, _LARGE = 384, 1600
"""Sides of pictures, in pixels: shorter ones are enlarged, longer ones are reduced."""


class ResultFolder:
    """Writes results as they come.

    Args:
        folder: where; made when there is something to write.
        images: all images that results will come for.
        pictures: whether to draw.
        resume: whether results that are in the folder already stay. Otherwise they are replaced.
    """

    def __init__(
        self,
        folder: str,
        images: Sequence[FoundImage],
        pictures: bool = True,
        resume: bool = False,
    ):
        self.folder, self._pictures = folder, pictures
        self._images: list[dict[str, Any]] = []
        self._predictions: list[dict[str, Any]] = []
        if resume:
            self._images = [row for row in _read(folder, IMAGES) if "skipped" not in row]
            self._predictions = _read(folder, PREDICTIONS)
        self._ids = _image_ids(images)
        self._taken = {row["picture"] for row in self._images if "picture" in row}
        self._names: dict[str, str] = {}
        self._is_clean = False

    @property
    def done(self) -> set[str]:
        """Paths of the images that have results."""
        return {row["file_name"] for row in self._images}

    @property
    def predictions_path(self) -> str:
        """The file with all predictions."""
        return os.path.join(self.folder, PREDICTIONS)

    def add(self, result: Result) -> None:
        """Writes the pictures of a result, and takes note of the rest, see `save`."""
        found: FoundImage = result.source
        number = self._ids[found.path]
        row: dict[str, Any] = {"id": number, "file_name": found.path}
        if result.prediction is None or result.picture is None:
            self._images.append({**row, "skipped": result.problem})
            return
        row["height"], row["width"] = result.picture.size
        if result.picture.notes:
            row["notes"] = list(result.picture.notes)
        name = self._free_name(found.name)
        if self._pictures:
            row["picture"] = f"{PICTURES}/{name}"
            pixels = result.prediction.draw(_readable(result.picture.pixels))
            _save(Image.fromarray(pixels), os.path.join(self.folder, row["picture"]))
        head = {"image_id": number, "file_name": found.path}
        files = result.prediction.images()
        for kind, image in files.items():
            head[kind.removesuffix("s")] = f"{kind}/{name}"
            _save(image, os.path.join(self.folder, kind, name))
        told = result.prediction.to_dict()
        self._predictions += [
            {**head, **each} for each in (told if isinstance(told, list) else [told])
        ]
        self._images.append(row)

    def save(self) -> None:
        """Writes both JSON files, as they are to be at this moment."""
        os.makedirs(self.folder, exist_ok=True)
        if not self._is_clean:
            self._is_clean = True
            folders = [each.path for each in os.scandir(self.folder) if each.is_dir()]
            for place in (self.folder, *folders):
                atomic_folder.remove_abandoned(place)
        for name, rows in ((PREDICTIONS, self._predictions), (IMAGES, self._images)):
            lines = ",\n".join(map(_line, rows))
            atomic_file.replace(os.path.join(self.folder, name), f"[\n{lines}\n]\n".encode())

    def _free_name(self, name: str) -> str:
        """Of the pictures of an image: its own name, with a number if that is taken."""
        stem = os.path.splitext(name)[0].replace(os.sep, "/").replace("../", "")
        candidate, number = f"{stem}.png", 1
        while f"{PICTURES}/{candidate}" in self._taken:
            number += 1
            candidate = f"{stem}_{number}.png"
        self._taken.add(f"{PICTURES}/{candidate}")
        return candidate


def _image_ids(images: Sequence[FoundImage]) -> dict[str, int]:
    """Numbers of images by path: those in their names, as COCO has them, or else from 1 on."""
    stems = [os.path.splitext(os.path.basename(image.path))[0] for image in images]
    if all(stem.isdecimal() for stem in stems) and len({int(stem) for stem in stems}) == len(stems):
        return {image.path: int(stem) for image, stem in zip(images, stems, strict=True)}
    return {image.path: number for number, image in enumerate(images, start=1)}


def _readable(pixels: np.ndarray) -> np.ndarray:
    """The image in a size that can be looked at and written on."""
    height, width = pixels.shape[:2]
    scale = min(max(1.0, _SMALL / min(height, width)), _LARGE / max(height, width))
    if scale == 1.0:
        return pixels
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    method = Image.Resampling.BOX if scale < 1 else Image.Resampling.BILINEAR
    return np.asarray(Image.fromarray(pixels).resize(size, method))


def _line(row: dict[str, Any]) -> str:
    """A row as JSON; a file name that is no UTF-8 is escaped, and read back as it is."""
    text = json.dumps(row, ensure_ascii=False)
    return text if text.encode("utf-8", "replace").decode() == text else json.dumps(row)


def _save(image: Image.Image, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = atomic_folder.temporary(path)
    try:
        image.save(temporary, "PNG", compress_level=3)
        os.replace(temporary, path)
    finally:
        atomic_folder.discard(temporary)


def _read(folder: str, name: str) -> list[dict[str, Any]]:
    path = os.path.join(folder, name)
    content: Optional[Any] = None
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except FileNotFoundError:
        return []
    except ValueError:
        content = None
    if not isinstance(content, list):
        raise OSError(0, "is not what `hortus predict` writes; start anew without `resume`", path)
    return content
