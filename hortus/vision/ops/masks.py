"""Masks of objects, each seen through its box."""

from typing import Any

from keras import ops

from hortus.vision.ops.roi_align import grid_positions

# Sides that cannot be divided by are taken for this long.
_LEAST_SIDE = 1e-6
THRESHOLD = 0.5
"""Mask values above belong to the object."""


def paste(masks: Any, boxes: Any, image_size: tuple[int, int]) -> Any:
    """Puts masks into their image, by linear interpolation between the centres of cells.

    Args:
        masks: [..., h, w], 0 to 1, each over the whole of its box.
        boxes: [..., 4], in pixels.
        image_size: height and width of the image.

    Returns:
        float32 [..., height, width], 0 to 1; 0 outside of the box.
    """
    boxes = ops.cast(boxes, "float32")
    rows = (ops.arange(image_size[0], dtype="float32") + 0.5 - boxes[..., :1]) / _side(boxes, 0)
    columns = (ops.arange(image_size[1], dtype="float32") + 0.5 - boxes[..., 1:2]) / _side(boxes, 1)
    height, width = ops.shape(masks)[-2:]
    return _sample(masks, rows * height - 0.5, columns * width - 0.5)


def crop(
    masks: Any,
    boxes: Any,
    target_boxes: Any,
    size: int,
    sample_offset: float = 0.0,
    mask_offset: float = 0.0,
) -> Any:
    """What other boxes see of masks, as the targets of a mask head.

    Args:
        masks: [..., h, w], 0 to 1, each over the whole of its box.
        boxes: [..., 4], in pixels.
        target_boxes: [..., 4], in pixels.
        size: side of the result.
        sample_offset: where in its cell of the result each sample lies, see `roi_align`.
        mask_offset: where in its cell each value of the mask lies: 0 at the upper left, 0.5 in the
            middle, as `paste` has it.

    Returns:
        float32 [..., size, size], 0 to 1; 0 outside of the mask's box.
    """
    boxes = ops.cast(boxes, "float32")
    ys, xs = grid_positions(ops.cast(target_boxes, "float32"), size, sample_offset)
    height, width = ops.shape(masks)[-2:]
    rows = (ys - boxes[..., :1]) / _side(boxes, 0) * height
    columns = (xs - boxes[..., 1:2]) / _side(boxes, 1) * width
    return _sample(masks, rows - mask_offset, columns - mask_offset)


def overlaps(
    masks: Any, boxes: Any, gt_masks: Any, gt_boxes: Any, image_size: tuple[int, int]
) -> tuple[Any, Any]:
    """How much masks and the masks of objects overlap.

    Args:
        masks: [batch, n, h, w].
        boxes: [batch, n, 4], in pixels.
        gt_masks: [batch, m, h, w].
        gt_boxes: [batch, m, 4], in pixels.
        image_size: height and width of the image in which they are compared.

    Returns:
        Intersection over union, and over the area of `masks`; [batch, n, m] each, 0 to 1.
    """
    ours = ops.cast(paste(masks, boxes, image_size) > THRESHOLD, "float32")
    theirs = ops.cast(paste(gt_masks, gt_boxes, image_size) > THRESHOLD, "float32")
    both = ops.einsum("bnhw,bmhw->bnm", ours, theirs)
    area = ops.expand_dims(ops.sum(ours, axis=(-2, -1)), -1)
    other = ops.expand_dims(ops.sum(theirs, axis=(-2, -1)), -2)
    # Without pixels there is no overlap, and nothing to divide by.
    return both / ops.maximum(area + other - both, 1.0), both / ops.maximum(area, 1.0)


def _side(boxes: Any, axis: int) -> Any:
    """Height, 0, or width, 1, of boxes, [..., 1]."""
    side = boxes[..., axis + 2 : axis + 3] - boxes[..., axis : axis + 1]
    return ops.maximum(side, _LEAST_SIDE)


def _sample(masks: Any, rows: Any, columns: Any) -> Any:
    """Values of `masks` [..., h, w] at `rows` [..., a] and `columns` [..., b]: [..., a, b]."""
    height, width = ops.shape(masks)[-2:]
    masks = ops.cast(masks, "float32")
    sampled = ops.matmul(_weights(rows, height), masks)
    return ops.matmul(sampled, ops.swapaxes(_weights(columns, width), -1, -2))


def _weights(places: Any, cells: int) -> Any:
    """Shares of `cells` at each of `places` [..., a]: [..., a, cells]; a tent around each cell."""
    distance = ops.abs(ops.expand_dims(places, -1) - ops.arange(cells, dtype="float32"))
    return ops.maximum(1.0 - distance, 0.0)
