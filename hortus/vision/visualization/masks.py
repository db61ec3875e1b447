"""Pictures of masks: the class of each pixel as a colour over the image."""

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from hortus.vision.visualization.boxes import class_colour

_GAP, _LINE = 6, 18
_INK, _PAPER = (34, 40, 49), (255, 255, 255)
_IGNORED = np.array([235, 235, 235])


def class_colours(num_classes: int) -> np.ndarray:
    """A colour for each class, uint8 [classes, 3]; the same for the same number always."""
    colours = [class_colour(number) for number in range(num_classes)]
    return np.array(colours, np.uint8).reshape(-1, 3)


def background_class(class_names: Sequence[str]) -> Optional[int]:
    """The number of the class that pictures leave as it is: the first, if its name says so."""
    return 0 if class_names and class_names[0].lower() in ("background", "unlabeled") else None


def overlay_masks(
    image: Any,
    mask: Any,
    num_classes: int,
    ignore_label: Optional[int] = 255,
    background: Optional[int] = None,
    opacity: float = 0.55,
) -> np.ndarray:
    """Lays the colours of the classes over an image; returns uint8 [height, width, 3].

    Args:
        image: uint8 [height, width, 3].
        mask: class numbers [height, width], or with a last dimension of 1.
        num_classes: number of classes, which determines no colour: further ones may come.
        ignore_label: pixels with this number become pale.
        background: class that is left as it is; None colours all.
        opacity: of the colours, 0 to 1; the borders between classes are always drawn in full.
    """
    image, mask = np.asarray(image), np.squeeze(np.asarray(mask))
    if image.dtype != np.uint8 or image.shape[:2] != mask.shape:
        raise ValueError(
            f"expected a uint8 image and a mask of its size, got {image.dtype} {image.shape} and "
            f"{mask.shape}"
        )
    colours = class_colours(max(num_classes, 1))
    is_class = (mask >= 0) & (mask < num_classes)
    if ignore_label is not None:
        is_class &= mask != ignore_label
    painted = is_class if background is None else is_class & (mask != background)
    paint = colours[np.where(is_class, mask, 0)].astype(float)
    result = image.astype(float)
    result[painted] += (paint - result)[painted] * opacity
    border = painted & _is_border(np.where(is_class, mask, -1))
    result[border] = paint[border]
    if ignore_label is not None:
        ignored = mask == ignore_label
        result[ignored] += (_IGNORED - result)[ignored] * opacity
    return np.rint(result).astype(np.uint8)


def draw_side_by_side(
    image: Any,
    masks: Sequence[Any],
    titles: Sequence[str],
    class_names: Sequence[str],
    ignore_label: Optional[int] = 255,
    background: Optional[int] = None,
    size: int = 224,
) -> np.ndarray:
    """The image, and beside it once more under each mask, with a legend; uint8 [h, w, 3].

    Args:
        image: uint8 [height, width, 3].
        masks: class numbers [height, width] each, such as truth and prediction.
        titles: one for each mask.
        class_names: names of all classes, in the order of their numbers.
        ignore_label: pixels with this number become pale.
        background: class that is left as it is; None colours all.
        size: side of the square that each picture is fitted into, in pixels.
    """
    count = len(class_names)
    options = {"ignore_label": ignore_label, "background": background}
    pictures = [np.asarray(image)]
    pictures += [overlay_masks(image, mask, count, **options) for mask in masks]  # type: ignore[arg-type]
    used = np.unique(np.concatenate([np.ravel(mask) for mask in masks]))
    legend = [number for number in used if 0 <= number < count and number != background]
    font = ImageFont.load_default(size=12)
    top, width = _LINE + _GAP, _GAP + len(pictures) * (size + _GAP)
    rows = _legend_rows([class_names[number] for number in legend], font, width)
    height = top + size + _GAP + _LINE * (max(rows, default=0) + 1) + _GAP
    sheet = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(sheet)
    for place, (picture, title) in enumerate(zip(pictures, ("image", *titles), strict=True)):
        left = _GAP + place * (size + _GAP)
        draw.text((left + size // 2, _GAP), title, _INK, font, anchor="ma")
        fitted = Image.fromarray(picture)
        scale = size / max(fitted.size)
        new = tuple(max(1, round(side * scale)) for side in fitted.size)
        fitted = fitted.resize(new, Image.Resampling.BILINEAR)  # type: ignore[arg-type]
        sheet.paste(fitted, (left + (size - new[0]) // 2, top + (size - new[1]) // 2))
    _draw_legend(draw, legend, class_names, font, (width, top + size + _GAP))
    return np.asarray(sheet)


def _is_border(mask: np.ndarray) -> np.ndarray:
    """Which pixels have a neighbour of another class, right or below."""
    differs = np.zeros(mask.shape, bool)
    differs[:, :-1] |= mask[:, :-1] != mask[:, 1:]
    differs[:-1] |= mask[:-1] != mask[1:]
    return differs


def _legend_rows(names: Sequence[str], font: Any, width: int) -> list[int]:
    """The row of each entry of a legend, from 0."""
    rows, left, row = [], _GAP, 0
    for name in names:
        step = int(font.getlength(name)) + _LINE + 2 * _GAP
        if left + step > width and left > _GAP:
            left, row = _GAP, row + 1
        rows.append(row)
        left += step
    return rows


def _draw_legend(
    draw: ImageDraw.ImageDraw,
    numbers: Sequence[int],
    class_names: Sequence[str],
    font: Any,
    place: tuple[int, int],
) -> None:
    width, top = place
    names = [class_names[number] for number in numbers]
    left, before = _GAP, 0
    colours = class_colours(len(class_names))
    for number, name, row in zip(numbers, names, _legend_rows(names, font, width), strict=True):
        left = left if row == before else _GAP
        before = row
        y = top + row * _LINE
        colour = tuple(int(part) for part in colours[number])
        draw.rectangle((left, y + 2, left + 12, y + 14), fill=colour)
        draw.text((left + _LINE, y + 1), name, _INK, font)
        left += int(font.getlength(name)) + _LINE + 2 * _GAP
