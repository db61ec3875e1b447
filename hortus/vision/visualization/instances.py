"""Objects drawn on an image: their masks, boxes, classes and scores."""

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from hortus.vision.visualization.boxes import class_colour, draw_boxes

MAX_MASKS = 100
"""Most masks that are drawn."""
_MAX_LABELS = 25
"""More objects than these would be hidden by their names: they have masks only."""
_OPACITY = 0.5


def paste_masks(masks: Any, boxes: Any, size: Sequence[int]) -> np.ndarray:
    """Masks of boxes as pixels of their image, bool [n, height, width].

    Args:
        masks: [n, h, w], 0 to 1, each over the whole of its box, its values in the middles of
            cells.
        boxes: [n, 4] as y0, x0, y1, x1 in pixels.
        size: height and width of the image.
    """
    masks, boxes = np.asarray(masks, np.float32), np.asarray(boxes, np.float64)
    pasted = np.zeros((len(masks), *size), bool)
    for mask, box, pixels in zip(masks, boxes, pasted, strict=True):
        begin = np.clip(np.floor(box[:2]), 0, size).astype(int)
        end = np.clip(np.ceil(box[2:]), 0, size).astype(int)
        if not np.isfinite(box).all() or (end <= begin).any():
            continue
        weights = [
            _tents(np.arange(begin[i], end[i]), box[i], box[i + 2], mask.shape[i]) for i in (0, 1)
        ]
        inside = weights[0] @ mask @ weights[1].T > 0.5
        pixels[begin[0] : end[0], begin[1] : end[1]] = inside
    return pasted


def draw_instances(
    image: Any,
    boxes: Any,
    classes: Any,
    scores: Any = None,
    class_names: Sequence[str] = (),
    *,
    masks: Optional[Any] = None,
    min_score: float = 0.0,
    title: str = "",
) -> np.ndarray:
    """Draws objects on a copy of an image. Each mask has its own colour, so that neighbours differ.

    Args:
        image: uint8 [height, width, 3] or [height, width, 1].
        boxes: [n, 4] as y0, x0, y1, x1 in pixels; rows without an area, such as padding, are left
            out.
        classes: [n], from 1; 0 and less are padding.
        scores: [n], 0 to 1; None where nothing is scored, as for the truth.
        class_names: name of class 1, of class 2 and so on; numbers stand for missing ones.
        masks: bool [n, height, width]; None draws boxes alone.
        min_score: objects with a lower score are left out.
        title: text in the upper left corner.

    Returns:
        uint8 [height, width, 3].
    """
    options: dict[str, Any] = {"min_score": min_score, "title": title}
    if masks is None:
        return draw_boxes(image, boxes, classes, scores, class_names, **options)
    image, boxes = np.asarray(image), np.asarray(boxes, np.float64)
    is_shown = (np.asarray(classes) > 0) & (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    if scores is not None:
        is_shown &= np.asarray(scores) >= min_score
    numbers = np.flatnonzero(is_shown)[:MAX_MASKS]
    picture = np.broadcast_to(image, (*image.shape[:2], 3)).astype(np.float32)
    for place, number in enumerate(numbers.tolist()):
        mask, colour = np.asarray(masks[number], bool), np.array(class_colour(place), np.float32)
        picture[mask] += (colour - picture[mask]) * _OPACITY
        picture[_outline(mask)] = colour
    picture = np.rint(picture).astype(np.uint8)
    if len(numbers) > _MAX_LABELS:
        numbers = numbers[:0]
    return draw_boxes(
        picture,
        boxes[numbers],
        np.asarray(classes)[numbers],
        None if scores is None else np.asarray(scores)[numbers],
        class_names,
        line_width=1,
        **options,
    )


def _tents(pixels: np.ndarray, begin: float, end: float, cells: int) -> np.ndarray:
    """Shares [pixels, cells] of the cells between `begin` and `end` in the middle of pixels."""
    places = (pixels + 0.5 - begin) / max(end - begin, 1e-6) * cells - 0.5
    return np.maximum(1.0 - np.abs(places[:, None] - np.arange(cells)), 0.0)


def _outline(mask: np.ndarray) -> np.ndarray:
    """Pixels of a mask that have a neighbour outside of it."""
    around = np.pad(mask, 1)
    inner = around[:-2, 1:-1] & around[2:, 1:-1] & around[1:-1, :-2] & around[1:-1, 2:]
    return mask & ~inner
