"""Metrics of Keras 3, in the style of TensorFlow 2, or of plain Python: handled alike."""

from typing import Any

import keras
import numpy as np
from keras import ops

from hortus.engine import kernels
from hortus.engine.variables import read, set_to_zero

_SET_TO_ZERO = (
    keras.metrics.Metric.reset_state,
    keras.metrics.Mean.reset_state,
    keras.metrics.Sum.reset_state,
)


class LossMean(keras.metrics.Mean):
    """The mean of a loss, a number per step: with fewer operations than Keras' mean of anything."""

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Counts one loss; with a weight, or losses of several examples, as Keras does."""
        if sample_weight is not None or ops.ndim(values):
            super().update_state(values, sample_weight)
            return
        kernels.add_number(self.total, values)
        kernels.add_number(self.count, 1)


def flat(*metrics: Any) -> list[Any]:
    """All metrics of nested structures of them."""
    return keras.tree.flatten(metrics)


def reset(metric: Any) -> None:
    """Resets a Keras metric, or one that has its own method in the old spelling."""
    if hasattr(type(metric), "reset_states"):
        metric.reset_states()
    elif getattr(type(metric), "reset_state", None) in _SET_TO_ZERO:
        set_to_zero(metric.variables)
    else:
        metric.reset_state()


def result(metric: Any) -> Any:
    """A metric's value: a number, an array, or a structure of them."""
    if getattr(type(metric), "result", None) is keras.metrics.Mean.result:
        # The same without tensors, as this is asked after every loop.
        total, count = read(metric.total), read(metric.count)
        return float(total / count) if count else 0.0
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
    return float(read(value))
