"""Losses of image classification."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from hortus.vision.configs import image_classification as configs
from hortus.vision.losses import factory


@factory.register_loss(configs.Losses)
def build_classification_loss(
    task_config: configs.ImageClassificationTask,
) -> Callable[[Any, Any], Any]:
    """Cross entropy: of a softmax, or of one sigmoid per class."""
    config, num_classes = task_config.losses, task_config.model.num_classes
    options = (config.label_smoothing, config.class_weights)

    def loss(labels: Any, model_outputs: Any) -> Any:
        if task_config.train_data.is_multilabel:
            # The mean over classes times their number: the sum over the classes of an image.
            return sigmoid_loss(labels, model_outputs, *options) * num_classes
        if config.use_binary_cross_entropy:
            return sigmoid_loss(labels, model_outputs, *options)
        return softmax_loss(labels, model_outputs, *options)

    return loss


def softmax_loss(
    labels: Any,
    outputs: Any,
    label_smoothing: float = 0.0,
    class_weights: Sequence[float] | None = None,
    from_logits: bool = True,
) -> Any:
    """Mean cross entropy of one class per image.

    Args:
        labels: class numbers [batch], or class probabilities [batch, classes].
        outputs: logits [batch, classes], or probabilities if not `from_logits`.
        label_smoothing: share of the label that is spread over all classes, 0 to 1; only for
            probabilities.
        class_weights: factor on the loss of each class' images.
        from_logits: whether `outputs` are logits.
    """
    is_sparse = len(labels.shape) < len(outputs.shape)
    if is_sparse:
        losses = keras.losses.sparse_categorical_crossentropy(
            labels, outputs, from_logits=from_logits
        )
    else:
        losses = keras.losses.categorical_crossentropy(
            labels, outputs, from_logits=from_logits, label_smoothing=label_smoothing
        )
    if class_weights is not None:
        weights = ops.convert_to_tensor(class_weights, dtype=losses.dtype)
        if is_sparse:
            losses = losses * ops.take(weights, labels)
        else:
            losses = losses * ops.sum(ops.cast(labels, losses.dtype) * weights, axis=-1)
    return ops.mean(losses)


def sigmoid_loss(
    labels: Any,
    outputs: Any,
    label_smoothing: float = 0.0,
    class_weights: Sequence[float] | None = None,
    from_logits: bool = True,
) -> Any:
    """Mean binary cross entropy over all images and classes: one sigmoid per class.

    Args:
        labels: 0 to 1 for each class [batch, classes].
        outputs: logits [batch, classes], or probabilities if not `from_logits`.
        label_smoothing: how far labels are moved from 0 and 1 towards one half, 0 to 1.
        class_weights: factor on each class' loss.
        from_logits: whether `outputs` are logits.
    """
    labels = ops.cast(labels, outputs.dtype) * (1 - label_smoothing) + 0.5 * label_smoothing
    losses = ops.binary_crossentropy(labels, outputs, from_logits=from_logits)
    if class_weights is not None:
        losses = losses * ops.convert_to_tensor(class_weights, dtype=losses.dtype)
    return ops.mean(losses)
