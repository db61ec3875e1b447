"""Losses of semantic segmentation."""

from collections.abc import Callable, Sequence
from typing import Any

from keras import ops

from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.losses import factory
from hortus.vision.ops.resize import resize, resize_nearest

EPSILON = 1e-5
"""Keeps a mean over no pixels from dividing by zero."""


class SegmentationLoss:
    """Cross entropy of every pixel, as the mean over the pixels that count.

    Args:
        label_smoothing: share of the label that is spread over all classes, 0 to 1.
        class_weights: factor on the loss per class; empty for 1.
        ignore_label: pixels with this label do not count.
        use_groundtruth_dimension: enlarge the logits to the labels' size; otherwise shrink the
            labels to the logits' size.
        use_binary_cross_entropy: one sigmoid per class instead of a softmax.
        top_k_percent_pixels: share of the hardest pixels of the batch that count, 0 to 1; with
            sigmoids, of the hardest decisions.
        gt_is_matting_map: labels are opacities of the foreground, class 1, from 0 to 1.
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        class_weights: Sequence[float] = (),
        ignore_label: int = 255,
        use_groundtruth_dimension: bool = True,
        use_binary_cross_entropy: bool = False,
        top_k_percent_pixels: float = 1.0,
        gt_is_matting_map: bool = False,
    ):
        self.label_smoothing = label_smoothing
        self.class_weights = list(class_weights)
        self.ignore_label = ignore_label
        self.use_groundtruth_dimension = use_groundtruth_dimension
        self.use_binary_cross_entropy = use_binary_cross_entropy
        self.top_k_percent_pixels = top_k_percent_pixels
        self.gt_is_matting_map = gt_is_matting_map

    def __call__(self, logits: Any, labels: Any) -> Any:
        """The loss, a scalar; 0 where no pixel counts.

        Args:
            logits: [batch, height, width, classes].
            labels: [batch, height, width, layers], of any size: class numbers, with sigmoids in
                any number of layers, so that a pixel may have several classes; otherwise in one.
        """
        if self.use_groundtruth_dimension:
            logits = resize(logits, *ops.shape(labels)[1:3])
        else:
            labels = resize_nearest(labels, *ops.shape(logits)[1:3])
        num_classes = logits.shape[-1]
        vectors, is_valid = self._label_vectors(labels, num_classes)
        is_valid = ops.cast(is_valid, "float32")
        targets, smoothing = vectors, self.label_smoothing
        if smoothing:
            targets = vectors * (1.0 - smoothing) + smoothing / num_classes
        if self.use_binary_cross_entropy:
            losses = ops.binary_crossentropy(targets, logits, from_logits=True)
            if self.class_weights:
                losses = losses * ops.convert_to_tensor(self.class_weights, dtype=losses.dtype)
            is_valid = ops.broadcast_to(is_valid[..., None], ops.shape(losses))
        else:
            # One operation on TensorFlow, which keeps less in memory than its parts would.
            losses = ops.categorical_crossentropy(targets, logits, from_logits=True)
            if self.class_weights:
                weights = ops.convert_to_tensor(self.class_weights, dtype=losses.dtype)
                losses = losses * ops.sum(vectors * weights, axis=-1)
        return self._mean(losses * is_valid, is_valid)

    def _label_vectors(self, labels: Any, num_classes: int) -> tuple[Any, Any]:
        """Probabilities of the classes [batch, height, width, classes], and which pixels count."""
        if self.gt_is_matting_map:
            opacity = ops.cast(labels[..., :1], "float32")
            vectors = ops.concatenate([1.0 - opacity, opacity], axis=-1)
            return vectors, ops.ones_like(vectors[..., 0])
        labels = ops.cast(labels, "int32")
        is_known = ops.not_equal(labels, self.ignore_label)
        # A number below 0 belongs to no class: all zeros.
        layers = ops.one_hot(ops.where(is_known, labels, -1), num_classes)
        if labels.shape[-1] == 1:
            return layers[..., 0, :], is_known[..., 0]
        return ops.max(layers, axis=-2), ops.any(is_known, axis=-1)

    def _mean(self, losses: Any, weights: Any) -> Any:
        if self.top_k_percent_pixels < 1.0:
            losses, weights = ops.reshape(losses, [-1]), ops.reshape(weights, [-1])
            losses, places = _hardest(losses, self.top_k_percent_pixels)
            weights = ops.take(weights, places)
        return ops.sum(losses) / (ops.sum(weights) + EPSILON)


class MaskScoringLoss:
    """Mean squared error of the predicted IoU of each class' mask.

    Args:
        ignore_label: pixels with this label do not count.
    """

    def __init__(self, ignore_label: int = 255):
        self.ignore_label = ignore_label

    def __call__(self, predicted_scores: Any, logits: Any, labels: Any) -> Any:
        """The loss, a scalar.

        Args:
            predicted_scores: [batch, classes].
            logits: [batch, height, width, classes], whose masks were judged.
            labels: class numbers [batch, height, width, 1], of any size.
        """
        actual = actual_mask_scores(logits, labels, self.ignore_label)
        return ops.mean(ops.square(predicted_scores - ops.stop_gradient(actual)))


def actual_mask_scores(logits: Any, labels: Any, ignore_label: int = 255) -> Any:
    """IoU of each image's predicted mask of each class, [batch, classes]; 0 where both are empty.

    Args:
        logits: [batch, height, width, classes]; the masks are where a class is the likeliest.
        labels: class numbers [batch, height, width, 1], of any size.
        ignore_label: pixels with this label do not count.
    """
    labels = resize_nearest(labels, *ops.shape(logits)[1:3])
    labels = ops.cast(ops.squeeze(labels, axis=-1), "int32")
    is_valid = ops.cast(ops.not_equal(labels, ignore_label), "float32")[..., None]
    num_classes = logits.shape[-1]
    predicted = ops.one_hot(ops.argmax(logits, axis=-1), num_classes) * is_valid
    true = ops.one_hot(ops.where(labels == ignore_label, -1, labels), num_classes)
    both = ops.sum(predicted * true, axis=(1, 2))
    either = ops.sum(predicted + true, axis=(1, 2)) - both
    return both / ops.maximum(either, 1.0)


def _hardest(losses: Any, share: float) -> tuple[Any, Any]:
    """The largest of losses [n], and where they are."""
    count = losses.shape[0]
    if count is not None:
        return ops.top_k(losses, max(int(count * share), 1), sorted=False)
    # How many pixels there are shows only when the code runs: sort them all.
    places = ops.flip(ops.argsort(losses))
    kept = ops.maximum(ops.cast(ops.cast(ops.size(losses), "float32") * share, "int32"), 1)
    places = places[:kept]
    return ops.take(losses, places), places


@factory.register_loss(configs.Losses)
def build_segmentation_loss(
    task_config: configs.SemanticSegmentationTask,
) -> Callable[[Any, Any], Any]:
    """Cross entropy of the pixels, and the loss of mask scores where the model has them."""
    config = task_config.losses
    of_pixels = SegmentationLoss(
        label_smoothing=config.label_smoothing,
        class_weights=config.class_weights,
        ignore_label=config.ignore_label,
        use_groundtruth_dimension=config.use_groundtruth_dimension,
        use_binary_cross_entropy=config.use_binary_cross_entropy,
        top_k_percent_pixels=config.top_k_percent_pixels,
        gt_is_matting_map=config.gt_is_matting_map,
    )

    def loss(labels: Any, model_outputs: Any) -> Any:
        masks = labels["masks"]
        if config.gt_is_matting_map:
            masks = ops.cast(masks, "float32") / 255.0
        total = of_pixels(logits=model_outputs["logits"], labels=masks)
        if "mask_scores" in model_outputs:
            scoring = MaskScoringLoss(config.ignore_label)
            total = total + config.mask_scoring_weight * scoring(
                predicted_scores=model_outputs["mask_scores"],
                logits=model_outputs["logits"],
                labels=labels["masks"],
            )
        return total

    return loss
