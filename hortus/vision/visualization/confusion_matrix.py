"""A picture of a confusion matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_MARGIN = 8
_MAX_NAMED = 40
"""More classes than this are drawn without names and numbers, which nobody could read."""
_INK, _PAPER = (34, 40, 49), (255, 255, 255)
_DEEP = np.array([8, 81, 156])


def draw_confusion_matrix(counts: Any, class_names: Sequence[str]) -> np.ndarray:
    """Draws counts [true, predicted], each row in shades by its share; returns uint8 [h, w, 3]."""
    counts = np.asarray(counts)
    size = len(counts)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    is_named = size <= _MAX_NAMED
    cell = 40 if size <= 12 else 28 if is_named else max(1, 640 // size)
    font = ImageFont.load_default(size=12)
    names = [name if len(name) <= 18 else f"{name[:17]}…" for name in class_names]
    label = int(max(font.getlength(name) for name in names)) + 2 * _MARGIN if is_named else _MARGIN
    top = 3 * _MARGIN + 12
    side = cell * size
    picture = Image.new("RGB", (label + side + _MARGIN, top + side + label), _PAPER)
    draw = ImageDraw.Draw(picture)
    draw.text((label, _MARGIN), "rows: true class, columns: predicted", _INK, font)
    colours = np.rint(255 + (_DEEP - 255) * shares[..., None]).astype(np.uint8)
    block = np.repeat(np.repeat(colours, cell, axis=0), cell, axis=1)
    picture.paste(Image.fromarray(block), (label, top))
    if is_named:
        _write(picture, counts, shares, names, font, (label, top, cell))
    draw.rectangle((label, top, label + side - 1, top + side - 1), outline=_INK)
    return np.asarray(picture)


def _write(
    picture: Image.Image,
    counts: np.ndarray,
    shares: np.ndarray,
    names: Sequence[str],
    font: Any,
    place: tuple[int, int, int],
) -> None:
    left, top, cell = place
    draw = ImageDraw.Draw(picture)
    small = ImageFont.load_default(size=12 if cell >= 40 else 9)
    for row, name in enumerate(names):
        middle = top + row * cell + cell // 2
        draw.text((left - _MARGIN, middle), name, _INK, font, anchor="rm")
        column = Image.new("RGB", (left, 16), _PAPER)
        ImageDraw.Draw(column).text((left - _MARGIN, 8), name, _INK, font, anchor="rm")
        below = (left + row * cell + cell // 2 - 8, top + cell * len(names))
        picture.paste(column.rotate(90, expand=True), below)
    for row, column_index in zip(*np.nonzero(counts), strict=True):
        x = left + column_index * cell + cell // 2
        y = top + row * cell + cell // 2
        ink = _PAPER if shares[row, column_index] > 0.5 else _INK
        draw.text((x, y), str(counts[row, column_index]), ink, small, anchor="mm")
