"""Many pictures on one sheet, each with a caption."""

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
from PIL import Image, ImageDraw, ImageFont

RIGHT, WRONG, PLAIN = (46, 125, 50), (198, 40, 40), (120, 120, 120)
"""Colours of frames: a right answer, a wrong one, and no answer."""
_GAP, _CAPTION, _FRAME = 8, 18, 3
_INK, _PAPER = (34, 40, 49), (255, 255, 255)


def draw_contact_sheet(
    images: Sequence[Any],
    captions: Optional[Sequence[str]] = None,
    colours: Optional[Sequence[tuple[int, int, int]]] = None,
    columns: int = 8,
    size: int = 112,
) -> np.ndarray:
    """Draws pictures in rows; returns uint8 [height, width, 3].

    Args:
        images: uint8 [h, w, 3] or [h, w, 1] each, of any sizes; scaled to fit.
        captions: a line of text below each; too long ones are cut.
        colours: a frame for each, such as RIGHT and WRONG; none by default.
        columns: pictures per row.
        size: side of the square that a picture is fitted into, in pixels.
    """
    count = len(images)
    if not count:
        raise ValueError("a contact sheet needs at least one picture")
    columns = min(columns, count)
    rows = -(-count // columns)
    cell_height = size + (_CAPTION if captions else 0) + _GAP
    sheet = Image.new("RGB", (columns * (size + _GAP) + _GAP, rows * cell_height + _GAP), _PAPER)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=12)
    for index, image in enumerate(images):
        left = _GAP + (index % columns) * (size + _GAP)
        top = _GAP + (index // columns) * cell_height
        picture = _fitted(np.asarray(image), size)
        place = (left + (size - picture.width) // 2, top + (size - picture.height) // 2)
        sheet.paste(picture, place)
        if colours is not None:
            box = (left, top, left + size - 1, top + size - 1)
            draw.rectangle(box, outline=colours[index], width=_FRAME)
        if captions is not None:
            text = _cut(captions[index], font, size)
            draw.text((left + size // 2, top + size + 2), text, _INK, font, anchor="ma")
    return np.asarray(sheet)


def captioned(image: Any, text: str, least: int = 112) -> Image.Image:
    """A picture with a line of text below it.

    Args:
        image: uint8 [h, w, 3] or [h, w, 1].
        text: cut where it is too long.
        least: shortest width, for the sake of the text; a smaller picture is enlarged by a whole
            factor.
    """
    pixels = np.asarray(image)
    factor = max(1, -(-least // pixels.shape[1]))
    picture = _fitted(pixels, factor * max(pixels.shape[:2]))
    sheet = Image.new("RGB", (picture.width, picture.height + _CAPTION), _PAPER)
    sheet.paste(picture, (0, 0))
    font = ImageFont.load_default(size=12)
    place = (picture.width // 2, picture.height + 2)
    ImageDraw.Draw(sheet).text(place, _cut(text, font, picture.width), _INK, font, anchor="ma")
    return sheet


def _fitted(image: np.ndarray, size: int) -> Image.Image:
    if image.dtype != np.uint8:
        raise ValueError(f"pictures are uint8, got {image.dtype}")
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    picture = Image.fromarray(image).convert("RGB")
    scale = size / max(picture.size)
    new = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    is_larger = scale > 1
    return picture.resize(new, Image.Resampling.NEAREST if is_larger else Image.Resampling.BOX)


def _cut(text: str, font: Any, width: int) -> str:
    while text and font.getlength(text) > width:
        text = text[:-2].rstrip("…") + "…" if len(text) > 2 else ""
    return text
