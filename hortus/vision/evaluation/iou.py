"""Intersection over union of classes, by way of a confusion matrix."""

from typing import Any

import keras
import numpy as np
from keras import ops


def count_pairs(labels: Any, predictions: Any, is_valid: Any, num_classes: int) -> Any:
    """How often each class was taken for each, exactly: int32 [..., true, predicted].

    Args:
        labels: class numbers, int [examples, n].
        predictions: class numbers of the same shape.
        is_valid: which of them count, bool of the same shape; labels that are no class do not.
        num_classes: number of classes.
    """
    labels, predictions = ops.cast(labels, "int32"), ops.cast(predictions, "int32")
    is_inside = ops.logical_and(labels >= 0, labels < num_classes)
    is_valid = ops.cast(ops.logical_and(is_inside, ops.cast(is_valid, "bool")), "int32")
    pairs = num_classes * num_classes
    number = ops.shape(labels)[0]
    # Each example counts in cells of its own; what does not count adds 0 to some cell.
    cells = ops.clip(labels, 0, num_classes - 1) * num_classes + predictions
    cells = cells + ops.arange(number, dtype="int32")[:, None] * pairs
    counts = ops.segment_sum(
        ops.reshape(is_valid, [-1]), ops.reshape(cells, [-1]), num_segments=number * pairs
    )
    return ops.reshape(counts, (number, num_classes, num_classes))


def iou_of_counts(counts: Any) -> np.ndarray:
    """IoU of each class from counts [true, predicted]; NaN for one that is in neither."""
    counts = np.asarray(counts, np.float64)
    both = np.diagonal(counts)
    either = counts.sum(axis=0) + counts.sum(axis=1) - both
    with np.errstate(invalid="ignore"):
        return both / np.where(either > 0, either, np.nan)


class PerClassIoU(keras.metrics.Metric):
    """IoU of each class over all examples, [classes]; 0 for a class that was never met.

    Args:
        num_classes: number of classes.
        name: of the metric.
        dtype: of the result.
    """

    def __init__(self, num_classes: int, name: str = "per_class_iou", dtype: Any = None):
        super().__init__(name=name, dtype=dtype)
        self.num_classes = num_classes
        # Additions of a whole batch each: the share lost to rounding stays below 1e-6.
        self.counts = self.add_weight(
            shape=(num_classes, num_classes), initializer="zeros", dtype="float32", name="counts"
        )

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Takes in class numbers of any shape.

        Args:
            y_true: true classes.
            y_pred: predicted classes, of the same shape.
            sample_weight: 0 for what does not count, of the same shape; None counts all.
        """
        labels = ops.reshape(ops.convert_to_tensor(y_true), (1, -1))
        predictions = ops.reshape(ops.convert_to_tensor(y_pred), (1, -1))
        is_valid = ops.ones_like(labels, dtype="bool")
        if sample_weight is not None:
            is_valid = ops.reshape(ops.cast(sample_weight, "bool"), (1, -1))
        self._add(count_pairs(labels, predictions, is_valid, self.num_classes))

    def _add(self, counts: Any) -> None:
        """Adds the counts of examples, [examples, true, predicted]."""
        self.counts.assign_add(ops.cast(ops.sum(counts, axis=0), "float32"))

    def result(self) -> Any:
        both, either = self._both_and_either()
        return ops.cast(both / ops.maximum(either, 1.0), self.dtype)

    def _both_and_either(self) -> tuple[Any, Any]:
        counts = ops.convert_to_tensor(self.counts)
        both = ops.diagonal(counts)
        return both, ops.sum(counts, axis=0) + ops.sum(counts, axis=1) - both

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_classes": self.num_classes}
