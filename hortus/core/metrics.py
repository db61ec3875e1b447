"""Metrics of Keras 3, in the style of TensorFlow 2, or of plain Python: handled alike."""

from typing import Any

import keras
import numpy as np
from keras import ops


def flat(*metrics: Any) -> list[Any]:
    """All metrics of nested structures of them."""
    return keras.tree.flatten(metrics)


def with_old_names(metric: Any) -> Any:
    """The metric, which now also answers to `reset_states`, as trainers used to call it."""
    if hasattr(metric, "reset_state") and not hasattr(metric, "reset_states"):
        metric.reset_states = metric.reset_state
    return metric


def reset(metric: Any) -> None:
    """Resets a Keras metric, or one that has its own method in the old spelling."""
    if hasattr(type(metric), "reset_states"):
        metric.reset_states()
    else:
        metric.reset_state()


def result(metric: Any) -> Any:
    """A metric's value: a float, an array, or a dict of them."""
    value = metric.result()
    return keras.tree.map_structure(
        lambda leaf: leaf if isinstance(leaf, (int, float, np.ndarray)) else _number(leaf), value
    )


def _number(value: Any) -> Any:
    array = ops.convert_to_numpy(value)
    return array.item() if array.ndim == 0 else array


def to_float(value: Any) -> float:
    """A number, from a variable or a tensor of either engine."""
    return float(ops.convert_to_numpy(value))
