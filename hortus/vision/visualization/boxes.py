"""Boxes drawn on an image, with their classes and scores."""

import colorsys
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_DARK, _LIGHT = (20, 20, 20), (255, 255, 255)
_GOLDEN_RATIO = 0.618034


def class_colour(number: int) -> tuple[int, int, int]:
    """A bright colour, always the same for a class; neighbours are far apart."""
    hue = (0.33 + number * _GOLDEN_RATIO) % 1.0
    # Every third class is paler: more than a dozen hues alone look alike.
    saturation, value = ((0.95, 1.0), (0.6, 1.0), (0.95, 0.75))[number % 3]
    red, green, blue = colorsys.hsv_to_rgb(hue, saturation, value)
    return round(red * 255), round(green * 255), round(blue * 255)


def class_name(number: int, class_names: Sequence[str] = ()) -> str:
    """The name of a class that counts from 1, or its number where it has no name."""
    return class_names[number - 1] if 1 <= number <= len(class_names) else str(number)


def draw_boxes(
    image: Any,
    boxes: Any,
    classes: Any,
    scores: Any = None,
    class_names: Sequence[str] = (),
    *,
    min_score: float = 0.0,
    max_boxes: int = 100,
    title: str = "",
    line_width: Optional[int] = None,
) -> np.ndarray:
    """Draws boxes on a copy of an image; lines and letters grow with it.

    Args:
        image: uint8 [height, width, 3] or [height, width, 1].
        boxes: [n, 4] as y0, x0, y1, x1 in pixels; rows without an area, such as padding, are left
            out.
        classes: [n], from 1; 0 and less are padding.
        scores: [n], 0 to 1, written beside the names; None where nothing is scored, as for
            the truth.
        class_names: name of class 1, of class 2 and so on; numbers stand for missing ones.
        min_score: boxes with a lower score are left out.
        max_boxes: most boxes to draw; the best ones where they have scores.
        title: text in the upper left corner.
        line_width: in pixels; by default by the size of the image.

    Returns:
        uint8 [height, width, 3].
    """
    image = np.asarray(image)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[-1] not in (1, 3):
        raise ValueError(
            f"draw_boxes takes an image uint8 [height, width, 1 or 3], got {image.dtype} "
            f"{list(image.shape)}"
        )
    picture = Image.fromarray(np.broadcast_to(image, (*image.shape[:2], 3)).copy())
    draw = ImageDraw.Draw(picture)
    side = min(picture.size)
    line = line_width or max(1, round(side / 220))
    # Below 9 pixels letters cannot be read, whatever the size of the image.
    font = ImageFont.load_default(size=max(9, round(side / 36)))

    shown = _shown(boxes, classes, scores, min_score, max_boxes)
    # The best ones last, so that they lie on top.
    for box, number, _ in reversed(shown):
        y0, x0, y1, x1 = _inside(box, picture)
        draw.rectangle((x0, y0, x1, y1), outline=class_colour(number), width=line)
    taken: list[tuple[float, float, float, float]] = []
    for box, number, score in shown:
        text = class_name(number, class_names)
        if score is not None:
            text = f"{text} {score:.2f}"
        _label(draw, font, text, _inside(box, picture), class_colour(number), line, taken)
    if title:
        _label(draw, font, title, (0.0, 0.0, 0.0, 0.0), _DARK, line, [])
    return np.asarray(picture)


def draw_side_by_side(left: np.ndarray, right: np.ndarray, gap: int = 4) -> np.ndarray:
    """Two pictures of the same height beside each other, with a white gap."""
    bar = np.full((left.shape[0], gap, 3), 255, np.uint8)
    return np.concatenate([left, bar, right], axis=1)


def _shown(
    boxes: Any, classes: Any, scores: Any, min_score: float, max_boxes: int
) -> list[tuple[np.ndarray, int, Optional[float]]]:
    """What is to be drawn, best first."""
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    classes = np.asarray(classes).reshape(-1).astype(int)
    if len(boxes) != len(classes) or (scores is not None and np.size(scores) != len(boxes)):
        raise ValueError(
            f"boxes, classes and scores must be of one length, got {len(boxes)}, {len(classes)} "
            f"and {'none' if scores is None else np.size(scores)}"
        )
    keep = (boxes[:, 2:] > boxes[:, :2]).all(axis=1) & (classes > 0) & np.isfinite(boxes).all(1)
    order = np.arange(len(boxes))
    if scores is not None:
        scores = np.asarray(scores, np.float64).reshape(-1)
        keep &= scores >= min_score
        order = np.argsort(-scores, kind="stable")
    order = order[keep[order]][:max_boxes]
    return [
        (boxes[i], int(classes[i]), None if scores is None else float(scores[i])) for i in order
    ]


def _inside(box: np.ndarray, picture: Image.Image) -> tuple[float, float, float, float]:
    """The box cut at the edges of the picture, at least one pixel large."""
    y0, x0 = (float(np.clip(box[i], 0, picture.size[1 - i] - 1)) for i in (0, 1))
    y1, x1 = (float(np.clip(box[i + 2] - 1, 0, picture.size[1 - i] - 1)) for i in (0, 1))
    return y0, x0, max(y0, y1), max(x0, x1)


def _label(
    draw: ImageDraw.ImageDraw,
    font: Any,
    text: str,
    box: tuple[float, float, float, float],
    colour: tuple[int, int, int],
    line: int,
    taken: list[tuple[float, float, float, float]],
) -> None:
    """Writes on a plate above the box, or where no other plate is."""
    left, top, right, bottom = font.getbbox(text)
    width, height = right - left + 2 * line + 2, bottom - top + 2 * line + 2
    limit_x, limit_y = draw.im.size
    y0, x0, y1, _ = box
    places = [(x0, y0 - height), (x0, y0), (x0, y1), (x0, y1 - height)]
    plates = []
    for x, y in places:
        x = min(max(x, 0), max(limit_x - width, 0))
        y = min(max(y, 0), max(limit_y - height, 0))
        plates.append((x, y, x + width, y + height))
    plate = next((p for p in plates if not any(_meet(p, other) for other in taken)), plates[0])
    taken.append(plate)
    draw.rectangle(plate, fill=colour)
    brightness = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
    ink = _DARK if brightness > 140 else _LIGHT
    draw.text((plate[0] + line + 1 - left, plate[1] + line + 1 - top), text, ink, font)


def _meet(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
