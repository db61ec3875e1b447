"""Metrics of image classification."""

from collections.abc import Sequence
from typing import Any, Optional

import keras
import numpy as np


def single_label_metrics(
    has_class_numbers: bool,
    top_k: int = 5,
    thresholds: Optional[Sequence[float]] = None,
    num_classes: int = 0,
    per_class: bool = False,
) -> list[keras.metrics.Metric]:
    """Accuracy, top-k accuracy, and precision and recall at score thresholds.

    Args:
        has_class_numbers: labels are class numbers [batch], else vectors [batch, classes].
        top_k: also how often the class is among this many best.
        thresholds: scores, 0 to 1, at which to measure precision and recall; they need label
            vectors and probabilities.
        num_classes: for `per_class`.
        per_class: measure precision and recall for each class too.
    """
    metrics = keras.metrics
    if has_class_numbers:
        return [
            metrics.SparseCategoricalAccuracy(name="accuracy"),
            metrics.SparseTopKCategoricalAccuracy(k=top_k, name=f"top_{top_k}_accuracy"),
        ]
    found: list[keras.metrics.Metric] = [
        metrics.CategoricalAccuracy(name="accuracy"),
        metrics.TopKCategoricalAccuracy(k=top_k, name=f"top_{top_k}_accuracy"),
    ]
    for threshold in thresholds or ():
        for cls, name in ((metrics.Precision, "precision"), (metrics.Recall, "recall")):
            title = f"{name}_at_threshold_{threshold}"
            found.append(cls(thresholds=threshold, top_k=1, name=title))
            if per_class:
                found += [
                    cls(thresholds=threshold, top_k=1, class_id=index, name=f"{title}/{index}")
                    for index in range(num_classes)
                ]
    return found


def multi_label_metrics(num_classes: int, from_logits: bool = True) -> list[keras.metrics.Metric]:
    """Area under the precision-recall curve: over all decisions, and as the mean of the classes."""
    return [
        keras.metrics.AUC(
            name="globalPR-AUC", curve="PR", multi_label=False, from_logits=from_logits
        ),
        keras.metrics.AUC(
            name="meanPR-AUC",
            curve="PR",
            multi_label=True,
            num_labels=num_classes,
            from_logits=from_logits,
        ),
    ]


class ConfusionMatrix:
    """Counts which class was taken for which: a metric in Python.

    Args:
        num_classes: number of classes.
        class_names: names of the classes, if they have some.
    """

    name = "confusion_matrix"

    def __init__(self, num_classes: int, class_names: Optional[Sequence[str]] = None):
        self.num_classes = num_classes
        self.class_names = list(class_names or map(str, range(num_classes)))
        self.reset_states()

    def reset_states(self) -> None:
        self.counts = np.zeros((self.num_classes, self.num_classes), np.int64)

    def update_state(self, labels: Any, predictions: Any) -> None:
        """Takes in class numbers [batch]: the true ones and the predicted ones."""
        labels, predictions = np.ravel(labels), np.ravel(predictions)
        inside = (labels >= 0) & (labels < self.num_classes)
        np.add.at(self.counts, (labels[inside], predictions[inside]), 1)

    def result(self) -> np.ndarray:
        """Counts [true, predicted]."""
        return self.counts

    def per_class_accuracy(self) -> dict[str, float]:
        """Share of each class' images that were recognised; classes without images left out."""
        totals = self.counts.sum(axis=1)
        return {
            name: float(self.counts[index, index] / totals[index])
            for index, name in enumerate(self.class_names)
            if totals[index]
        }
