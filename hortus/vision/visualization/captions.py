"""Lines of text on an image."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_PLATE, _INK = (20, 20, 20), (255, 255, 255)


def draw_caption(image: np.ndarray, lines: Sequence[str]) -> np.ndarray:
    """Writes lines into the upper left corner of a copy of an image; letters grow with it.

    Args:
        image: uint8 [height, width, 3].
        lines: the first one stands on top.

    Returns:
        uint8 [height, width, 3].
    """
    picture = Image.fromarray(np.ascontiguousarray(image))
    draw = ImageDraw.Draw(picture, "RGBA")
    size = max(10, round(min(picture.size) / 24))
    font = ImageFont.load_default(size=size)
    text = "\n".join(lines)
    gap = size // 3
    _, _, right, bottom = draw.multiline_textbbox((gap, gap), text, font, spacing=gap)
    draw.rectangle((0, 0, right + gap, bottom + gap), fill=(*_PLATE, 190))
    draw.multiline_text((gap, gap), text, _INK, font, spacing=gap)
    return np.asarray(picture)
