"""Clip lists of gradients, some of which may be None."""

from typing import Any, List, Sequence

from keras import ops


def clip_by_global_norm(gradients: Sequence[Any], norm: Any) -> List[Any]:
    """Scales all gradients by one factor so that their common L2 norm is at most `norm`."""
    squares = [ops.sum(ops.square(ops.cast(g, "float32"))) for g in gradients if g is not None]
    if not squares:
        return list(gradients)
    factor = norm / ops.maximum(ops.sqrt(ops.sum(ops.stack(squares))), norm)
    return [None if g is None else g * ops.cast(factor, g.dtype) for g in gradients]


def clip_by_value(gradients: Sequence[Any], value: Any) -> List[Any]:
    """Limits every element of every gradient to `-value .. value`."""
    return [None if g is None else ops.clip(g, -value, value) for g in gradients]
