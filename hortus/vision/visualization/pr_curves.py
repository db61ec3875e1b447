"""A picture of precision by recall."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from hortus.vision.visualization.boxes import class_colour

_SIDE, _LEFT, _TOP, _BELOW, _LEGEND = 360, 46, 34, 44, 230
_LINE = 16
_MAX_NAMED = (_SIDE - _LINE) // _LINE
"""More classes than this are drawn without names."""
_SMOOTH = 2
"""It is drawn larger and then reduced: PIL's lines have no soft edges."""
_INK, _PAPER, _GRID = (34, 40, 49), (255, 255, 255), (225, 228, 232)


def draw_pr_curves(
    curves: Mapping[str, tuple[Any, Any]], values: Sequence[float] = (), title: str = ""
) -> np.ndarray:
    """Draws one line per class; returns uint8 [height, width, 3].

    Args:
        curves: recall and precision, [n] each and 0 to 1, by the name of the class.
        values: a number per class that is written beside its name, such as average precision.
        title: above the lines.
    """
    lines = _draw_lines(curves)
    is_named = len(curves) <= _MAX_NAMED
    width = _LEFT + _SIDE + (_LEGEND if is_named else 20)
    picture = Image.new("RGB", (width, _TOP + _SIDE + _BELOW), _PAPER)
    picture.paste(lines, (_LEFT, _TOP))
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=12)
    draw.rectangle((_LEFT, _TOP, _LEFT + _SIDE, _TOP + _SIDE), outline=_INK)
    for tenths in range(0, 11, 2):
        offset = tenths * _SIDE // 10
        text = f"{tenths / 10:.1f}"
        draw.text((_LEFT - 6, _TOP + _SIDE - offset), text, _INK, font, anchor="rm")
        draw.text((_LEFT + offset, _TOP + _SIDE + 5), text, _INK, font, anchor="mt")
    draw.text((_LEFT + _SIDE // 2, _TOP + _SIDE + 24), "recall", _INK, font, anchor="mt")
    draw.text((_LEFT, _TOP - 8), "precision", _INK, font, anchor="ls")
    draw.text((_LEFT + _SIDE, _TOP - 8), title, _INK, font, anchor="rs")
    if is_named:
        _write_names(draw, font, list(curves), values)
    return np.asarray(picture)


def line_colour(number: int) -> tuple[int, int, int]:
    """The colour of a class, dark enough for white paper."""
    red, green, blue = class_colour(number)
    brightness = 0.299 * red + 0.587 * green + 0.114 * blue
    factor = min(1.0, 150 / brightness)
    return round(red * factor), round(green * factor), round(blue * factor)


def _draw_lines(curves: Mapping[str, tuple[Any, Any]]) -> Image.Image:
    side = _SIDE * _SMOOTH
    picture = Image.new("RGB", (side, side), _PAPER)
    draw = ImageDraw.Draw(picture)
    for fifth in range(1, 5):
        at = fifth * side // 5
        draw.line((at, 0, at, side), fill=_GRID, width=_SMOOTH)
        draw.line((0, at, side, at), fill=_GRID, width=_SMOOTH)
    for number, (recall, precision) in enumerate(curves.values(), start=1):
        xs, ys = np.asarray(recall, float) * side, (1 - np.asarray(precision, float)) * side
        points = [(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]
        draw.line(points, fill=line_colour(number), width=2 * _SMOOTH, joint="curve")
    return picture.resize((_SIDE, _SIDE), Image.Resampling.BOX)


def _write_names(draw: Any, font: Any, names: Sequence[str], values: Sequence[float]) -> None:
    left = _LEFT + _SIDE + 16
    for number, name in enumerate(names, start=1):
        y = _TOP + number * _LINE
        draw.line((left, y, left + 18, y), fill=line_colour(number), width=3)
        text = name if len(name) <= 22 else f"{name[:21]}…"
        if values:
            text = f"{values[number - 1]:.3f}  {text}"
        draw.text((left + 24, y), text, _INK, font, anchor="lm")
