"""Image files for prediction: finding them, and reading whatever sort of image they hold.

What evaluation can read is decoded by the same code: JPEG, PNG, GIF, BMP and WebP, of 8 or 16 bits
per channel, grey, with a palette, in CMYK, or with an alpha channel, which is left out. What it
cannot read, such as TIFF, is read by Pillow. Of an animation the first frame counts, and a photo
that was taken sideways is turned upright, as viewers do.
"""

import dataclasses
import glob
import io
import os
import threading
from collections.abc import Iterable
from typing import Optional, Union

import numpy as np
import tensorflow as tf
from PIL import Image

from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.attempts import reason_of
from hortus.vision.dataloaders.errors import DataError, near_paths

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff")
"""Of the files that are taken from a folder."""
MAX_PIXELS = 200_000_000
"""Larger images are not read: they would not fit into the memory of an ordinary machine."""
_SEQUENTIAL = ("GIF", "PNG", "WEBP", "TIFF")
_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What makes an image upright, by the orientation in its EXIF data."""

_PILLOW = threading.Lock()

PathLike = Union[str, "os.PathLike[str]"]


class UnreadableImageError(DataError):
    """A file that is no image, or none that can be read; `str(error)` says why."""


@dataclasses.dataclass(frozen=True)
class FoundImage:
    """An image file, and what its results are called."""

    path: str
    name: str
    """Its path below the folder that was searched, else the name of the file."""


@dataclasses.dataclass(frozen=True)
class Picture:
    """An image as it was read."""

    pixels: np.ndarray
    """uint8 [height, width, 3], upright."""
    encoded: Optional[bytes] = None
    """The bytes of the file, where evaluation would decode them to just these pixels."""
    notes: tuple[str, ...] = ()
    """What was done to it that may come as a surprise."""

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.pixels.shape[0], self.pixels.shape[1]


def find_images(paths: Union[PathLike, Iterable[PathLike]]) -> list[FoundImage]:
    """The image files that files, folders and patterns name, each once, in order.

    Of a folder all files below it count that are images by their ending, hidden ones aside; of a
    file or a pattern everything counts.

    Raises:
        DataError: a path is not there, or there is no image in it.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    found: dict[str, FoundImage] = {}
    for path in (os.fspath(each) for each in paths):
        if os.path.isdir(path):
            matches = _below(path)
            if not matches:
                raise DataError(f"{path}: no images in this folder ({', '.join(ENDINGS)})")
        elif os.path.exists(path):
            matches = [FoundImage(path, os.path.basename(path))]
        else:
            files = [
                file for file in sorted(glob.glob(path, recursive=True)) if os.path.isfile(file)
            ]
            if not files:
                what = "no file matches" if glob.has_magic(path) else "no such file or folder"
                raise DataError(f"{path}: {what}{near_paths(path)}")
            matches = [FoundImage(file, os.path.basename(file)) for file in files]
        for match in matches:
            found.setdefault(os.path.realpath(match.path), match)
    if not found:
        raise DataError("no images were named")
    return list(found.values())


def _below(folder: str) -> list[FoundImage]:
    images = []
    for parent, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if os.path.splitext(name)[1].lower() in ENDINGS and not name.startswith("."):
                path = os.path.join(parent, name)
                images.append(FoundImage(path, os.path.relpath(path, folder)))
    return images


def read_image(path: PathLike, upright: bool = True, max_pixels: int = MAX_PIXELS) -> Picture:
    """Reads an image file.

    Args:
        path: the file.
        upright: whether an image is turned as its EXIF data says. Evaluation does not.
        max_pixels: images with more are not read.

    Raises:
        UnreadableImageError: it cannot be read, or is too large.
    """
    try:
        with open(path, "rb") as file:
            encoded = file.read()
    except OSError as error:
        raise UnreadableImageError(f"cannot be opened: {error.strerror}") from None
    if not encoded:
        raise UnreadableImageError("the file is empty")
    return decode(encoded, upright, max_pixels)


def decode(encoded: bytes, upright: bool = True, max_pixels: int = MAX_PIXELS) -> Picture:
    """Like `read_image`, from the bytes of a file."""
    header = _header(encoded)
    notes = []
    if header is not None:
        width, height = header.size
        if width * height > max_pixels:
            raise UnreadableImageError(_too_large(f"{width} x {height} pixels", max_pixels))
        frames = getattr(header, "n_frames", 1) if header.format in _SEQUENTIAL else 1
        if frames > 1:
            notes.append(f"the first of {frames} frames")
    # TensorFlow takes the numbers of a BMP's palette for grey values.
    if header is not None and header.format == "BMP" and header.mode == "P":
        pixels, usual = _decode_with_pillow(header), False
    else:
        pixels, usual = _decode(encoded, header)
    turn = _TURNS.get(header.getexif().get(_ORIENTATION, 1)) if header and upright else None
    if turn is not None:
        pixels, usual = np.array(Image.fromarray(pixels).transpose(turn)), False
        notes.append("turned upright by its EXIF data")
    return Picture(pixels, encoded if usual else None, tuple(notes))


def _header(encoded: bytes) -> Optional[Image.Image]:
    """The image before it is decoded; None where Pillow does not know the format."""
    with _PILLOW:
        former = Image.MAX_IMAGE_PIXELS
        Image.MAX_IMAGE_PIXELS = None  # it has one limit for the whole process, and we have our own
        try:
            return Image.open(io.BytesIO(encoded))
        except (OSError, ValueError, SyntaxError):
            return None
        finally:
            Image.MAX_IMAGE_PIXELS = former


def _decode(encoded: bytes, header: Optional[Image.Image]) -> tuple[np.ndarray, bool]:
    """The pixels, and whether evaluation can decode them too."""
    try:
        return preprocess.decode_image(tf.constant(encoded)).numpy(), True
    except tf.errors.OpError as error:
        if header is None or header.format in ("JPEG", "PNG", "GIF", "BMP"):
            raise UnreadableImageError(f"not an image, or damaged: {reason_of(error)}") from None
    return _decode_with_pillow(header), False


def _decode_with_pillow(image: Image.Image) -> np.ndarray:
    try:
        if image.mode.startswith("I;16"):
            grey = (np.asarray(image).astype(np.uint32) // 257).astype(np.uint8)
            return np.repeat(grey[..., None], 3, axis=2)
        if image.mode in ("I", "F"):
            raise UnreadableImageError(
                f"{image.format} with 32 bits per channel, whose range is not known: convert it to "
                "8 or 16 bits"
            )
        return np.array(image.convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:
        if isinstance(error, UnreadableImageError):
            raise
        raise UnreadableImageError(f"damaged: {error}") from None


def _too_large(what: str, max_pixels: int) -> str:
    return (
        f"{what}, more than {max_pixels / 1e6:.0f} million: make it smaller, cut it into parts, or "
        "allow more: `max_pixels`"
    )
