"""Boxes relative to anchors, as networks predict them (Ren et al. 2015).

A code is (dy, dx, dh, dw): how far the centre moves, in sides of the anchor, and the logarithm of
the factor each side grows by.
"""

import math
from collections.abc import Sequence
from typing import Any

from keras import ops

from hortus.vision.ops import boxes as box_ops

# What a network says before it has learnt may be anything: no box grows more than this.
_MAX_GROWTH = math.log(1000.0 / 16.0)
# Sides that have no logarithm are taken for this long.
_LEAST_SIDE = 1e-8


def encode(boxes: Any, anchors: Any, weights: Sequence[float] | None = None) -> Any:
    """What has to be predicted at `anchors` [..., 4] for `boxes` [..., 4].

    Args:
        boxes: [..., 4].
        anchors: [..., 4].
        weights: factors on dy, dx, dh and dw, such as (10, 10, 5, 5); 1 otherwise.

    Returns:
        Codes [..., 4].
    """
    boxes, anchors = box_ops.to_cycxhw(boxes), box_ops.to_cycxhw(anchors)
    sides = ops.maximum(boxes[..., 2:], _LEAST_SIDE)
    anchor_sides = ops.maximum(anchors[..., 2:], _LEAST_SIDE)
    moves = (boxes[..., :2] - anchors[..., :2]) / anchor_sides
    codes = ops.concatenate([moves, ops.log(sides / anchor_sides)], axis=-1)
    return codes if weights is None else codes * _tensor(weights)


def decode(codes: Any, anchors: Any, weights: Sequence[float] | None = None) -> Any:
    """The boxes [..., 4] that `codes` [..., 4] at `anchors` [..., 4] stand for.

    Args:
        codes: [..., 4].
        anchors: [..., 4].
        weights: the factors they were encoded with.
    """
    codes = ops.cast(codes, "float32")
    if weights is not None:
        codes = codes / _tensor(weights)
    anchors = box_ops.to_cycxhw(anchors)
    centres = codes[..., :2] * anchors[..., 2:] + anchors[..., :2]
    sides = ops.exp(ops.minimum(codes[..., 2:], _MAX_GROWTH)) * anchors[..., 2:]
    return box_ops.from_cycxhw(ops.concatenate([centres, sides], axis=-1))


def _tensor(weights: Sequence[float]) -> Any:
    if len(weights) != 4:
        raise ValueError(f"expected four weights, for dy, dx, dh and dw, got {list(weights)}")
    return ops.convert_to_tensor(weights, dtype="float32")
