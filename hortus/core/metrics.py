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
    """A metric's value: a number, an array, or a structure of them."""
    return plain(metric.result())


def plain(logs: Any) -> Any:
    """Logs with numbers and arrays in place of tensors and variables."""
    return keras.tree.map_structure(_plain, logs)


def _plain(leaf: Any) -> Any:
    if not (ops.is_tensor(leaf) or isinstance(leaf, keras.Variable) or hasattr(leaf, "numpy")):
        return leaf
    array = np.asarray(leaf.numpy() if hasattr(leaf, "numpy") else ops.convert_to_numpy(leaf))
    return array.item() if array.ndim == 0 and array.dtype.kind in "biuf" else array


def to_float(value: Any) -> float:
    """A number, from a variable or a tensor of either engine."""
    return float(ops.convert_to_numpy(value))
