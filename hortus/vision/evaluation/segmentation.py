"""Metrics of semantic segmentation: IoU of the classes, at the input's size or the original's."""

from typing import Any

import keras
from keras import ops

from hortus.vision.evaluation import iou
from hortus.vision.ops.resize import rescale_to_original, resize


def class_logits(outputs: Any, labels: dict[str, Any], rescale_predictions: bool = False) -> Any:
    """Logits for every pixel of the labels, [batch, height, width, classes].

    Args:
        outputs: logits [batch, any height, any width, classes], or a dict with such `logits`.
        labels: `masks` [batch, height, width, 1] and, to rescale, `image_info` [batch, 4, 2].
        rescale_predictions: the labels have the images' original sizes, padded; see
            `rescale_to_original`. Otherwise they have the size of the model's input.
    """
    logits = outputs["logits"] if isinstance(outputs, dict) else outputs
    height, width = ops.shape(labels["masks"])[1:3]
    if not rescale_predictions:
        return resize(logits, height, width)
    return rescale_to_original(logits, labels["image_info"], height, width)


def valid_pixels(labels: dict[str, Any], rescale_predictions: bool = False) -> Any:
    """Which pixels of the labels count, bool [batch, height, width, 1].

    Args:
        labels: `valid_masks` of that shape and, to rescale, `image_info`.
        rescale_predictions: only those within the images' original sizes count.
    """
    is_valid = ops.cast(labels["valid_masks"], "bool")
    if not rescale_predictions:
        return is_valid
    height, width = ops.shape(is_valid)[1:3]
    original = ops.cast(labels["image_info"][:, 0, :, None, None], "int32")
    is_inside = ops.logical_and(
        ops.arange(height, dtype="int32")[:, None] < original[:, 0],
        ops.arange(width, dtype="int32")[None, :] < original[:, 1],
    )
    return ops.logical_and(is_valid, is_inside[..., None])


def count_classes(labels: Any, logits: Any, is_valid: Any) -> Any:
    """Counts int32 [batch, true, predicted] of pixels.

    Args:
        labels: class numbers [batch, height, width, 1].
        logits: [batch, height, width, classes].
        is_valid: which pixels count, bool [batch, height, width, 1].
    """
    batch = ops.shape(labels)[0]
    return iou.count_pairs(
        ops.reshape(labels, (batch, -1)),
        ops.reshape(ops.argmax(logits, axis=-1), (batch, -1)),
        ops.reshape(is_valid, (batch, -1)),
        logits.shape[-1],
    )


class PerClassIoU(iou.PerClassIoU):
    """IoU of each class' pixels over all images, [classes]; 0 for a class that was never met.

    Args:
        num_classes: number of classes.
        rescale_predictions: measure at the images' original sizes; see `class_logits`.
        name: of the metric.
        dtype: of the result.
    """

    def __init__(
        self,
        num_classes: int,
        rescale_predictions: bool = False,
        name: str = "per_class_iou",
        dtype: Any = None,
    ):
        super().__init__(num_classes, name=name, dtype=dtype)
        self.rescale_predictions = rescale_predictions

    def update_state(self, y_true: dict[str, Any], y_pred: Any, sample_weight: Any = None) -> None:
        """Takes in labels as the input pipeline gives them, and logits; see `class_logits`."""
        del sample_weight
        logits = class_logits(y_pred, y_true, self.rescale_predictions)
        is_valid = valid_pixels(y_true, self.rescale_predictions)
        self._add(count_classes(y_true["masks"], logits, is_valid))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rescale_predictions": self.rescale_predictions}


class MeanIoU(PerClassIoU):
    """Mean IoU of the classes that were met, a scalar; 0 before anything was.

    The arguments are those of `PerClassIoU`.
    """

    def __init__(self, num_classes: int, rescale_predictions: bool = False, **kwargs: Any):
        super().__init__(num_classes, rescale_predictions, **{"name": "mean_iou", **kwargs})

    def result(self) -> Any:
        both, either = self._both_and_either()
        is_met = ops.cast(either > 0, both.dtype)
        total = ops.sum(both / ops.maximum(either, 1.0))
        return ops.cast(total / ops.maximum(ops.sum(is_met), 1.0), self.dtype)


class MaskScoresMSE(keras.metrics.Mean):
    """Mean squared error of predicted mask scores; `update_state(actual, predicted)`."""

    def __init__(self, name: str = "mask_scores_mse", dtype: Any = None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Takes in actual and predicted scores [batch, classes]."""
        super().update_state(ops.square(y_true - y_pred), sample_weight)


PerClassIoUV2, MeanIoUV2 = PerClassIoU, MeanIoU
"""The names of the Model Garden's faster versions, which count alike."""
