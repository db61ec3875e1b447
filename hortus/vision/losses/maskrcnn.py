"""The losses of a two-stage detector: of its proposals, of its regions, and of their masks.

Each is a sum, divided by how many there were to sum up. Of a batch that is spread over several
replicas that number is known to all of them together only, so that losses take a function that
makes of the number at hand what to divide by; see `Count`.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from keras import ops

Count = Callable[[Any], Any]
"""From the number that a replica counted to what it divides by. For the mean of the replicas'
losses to be the loss of the whole batch, that is the mean of the replicas' numbers."""

# Added where there may be nothing to divide by.
_LITTLE = 0.01
_LEAST = 1e-5


def at_hand(count: Any) -> Any:
    """The `Count` of a batch that is all there is."""
    return count


@dataclasses.dataclass(frozen=True)
class RpnScoreLoss:
    """Cross entropy of the objectness of anchors, per anchor that was to be looked at.

    Args:
        rpn_batch_size_per_im: anchors per image that were chosen to learn from.
    """

    rpn_batch_size_per_im: int

    def __call__(
        self, score_outputs: Mapping[str, Any], labels: Mapping[str, Any], count: Count = at_hand
    ) -> Any:
        """The loss, a scalar.

        Args:
            score_outputs: logits by level, [batch, height, width, anchors].
            labels: by level, of the same shape: 1 for objects, 0 for background, -1 for anchors
                that do not count.
            count: see `Count`.
        """
        total: Any = 0.0
        for level, logits in score_outputs.items():
            targets = ops.cast(labels[level], "float32")
            losses = cross_entropy(ops.cast(logits, "float32"), targets)
            total = total + ops.sum(ops.where(targets >= 0, losses, 0.0))
        images = ops.cast(ops.shape(logits)[0], "float32")
        return total / count(images * self.rpn_batch_size_per_im)


@dataclasses.dataclass(frozen=True)
class RpnBoxLoss:
    """Huber loss of the boxes of anchors, the mean over the objects of a level, for all levels.

    Args:
        delta: error, in box coder units, from which the loss grows linearly.
    """

    delta: float

    def __call__(
        self, box_outputs: Mapping[str, Any], labels: Mapping[str, Any], count: Count = at_hand
    ) -> Any:
        """The loss, a scalar.

        Args:
            box_outputs: codes by level, [batch, height, width, anchors * 4].
            labels: by level, of the same shape; all four 0 for anchors without an object.
            count: see `Count`.
        """
        total: Any = 0.0
        for level, codes in box_outputs.items():
            codes, targets = (
                ops.reshape(ops.cast(x, "float32"), (-1, 4)) for x in (codes, labels[level])
            )
            is_object = ops.cast(ops.any(targets != 0.0, axis=-1, keepdims=True), "float32")
            losses = huber(codes - targets, self.delta) * is_object
            total = total + ops.sum(losses) / (count(4.0 * ops.sum(is_object)) + _LITTLE)
        return total


@dataclasses.dataclass(frozen=True)
class FastrcnnClassLoss:
    """Cross entropy of the classes of regions, per region.

    Args:
        use_binary_cross_entropy: one sigmoid per class, averaged, instead of a softmax.
        top_k_percent: share of the regions that count, those with the highest losses; 0 to 1.
    """

    use_binary_cross_entropy: bool = False
    top_k_percent: float = 1.0

    def __call__(
        self,
        class_outputs: Any,
        class_targets: Any,
        class_weights: Sequence[float] | None = None,
        counts: Any = None,
        count: Count = at_hand,
    ) -> Any:
        """The loss, a scalar.

        Args:
            class_outputs: logits [batch, regions, classes].
            class_targets: [batch, regions], 0 for background.
            class_weights: factor on the loss of each class; of a softmax, by the true class.
            counts: which regions count, bool [batch, regions]; all by default.
            count: see `Count`.
        """
        logits, targets = ops.cast(class_outputs, "float32"), ops.cast(class_targets, "int32")
        weights = None if class_weights is None else ops.convert_to_tensor(class_weights, "float32")
        is_true = ops.one_hot(targets, logits.shape[-1], dtype="float32")
        if self.use_binary_cross_entropy:
            losses = cross_entropy(logits, is_true)
            losses = ops.mean(losses if weights is None else losses * weights, axis=-1)
        else:
            losses = ops.logsumexp(logits, axis=-1) - ops.sum(logits * is_true, axis=-1)
            if weights is not None:
                losses = losses * ops.take(weights, targets, axis=0)
        counted = ops.ones_like(losses)
        if counts is not None:
            counted = ops.cast(counts, "float32")
        losses = losses * counted
        if self.top_k_percent >= 1.0:
            return ops.sum(losses) / ops.maximum(count(ops.sum(counted)), 1.0)
        losses = ops.reshape(losses, (-1,))
        number = ops.cast(ops.size(losses), "float32") * self.top_k_percent
        # Which of the sorted ones count, as the number of images may be open.
        losses = -ops.sort(-losses)
        is_first = ops.arange(ops.size(losses), dtype="float32") < ops.floor(number)
        is_first = ops.cast(is_first, "float32")
        return ops.sum(losses * is_first) / (count(ops.sum(is_first)) + _LEAST)


@dataclasses.dataclass(frozen=True)
class FastrcnnBoxLoss:
    """Huber loss of the boxes of regions, the mean over those with objects.

    Args:
        delta: error, in box coder units, from which the loss grows linearly.
        class_agnostic: whether there is one box for all classes.
    """

    delta: float = 1.0
    class_agnostic: bool = False

    def __call__(
        self,
        box_outputs: Any,
        class_targets: Any,
        box_targets: Any,
        count: Count = at_hand,
    ) -> Any:
        """The loss, a scalar.

        Args:
            box_outputs: codes [batch, regions, classes * 4], or [batch, regions, 4].
            class_targets: [batch, regions], 0 for background.
            box_targets: codes [batch, regions, 4].
            count: see `Count`.
        """
        codes, classes = ops.cast(box_outputs, "float32"), ops.cast(class_targets, "int32")
        is_object = ops.expand_dims(ops.cast(classes > 0, "float32"), -1)
        if not self.class_agnostic:
            regions, numbers = codes.shape[1:]
            codes = ops.reshape(codes, (-1, regions, numbers // 4, 4))
            is_true = ops.one_hot(classes, numbers // 4, dtype="float32")
            codes = ops.einsum("brck,brc->brk", codes, is_true)
        losses = huber(codes - ops.cast(box_targets, "float32"), self.delta) * is_object
        return ops.sum(losses) / (count(4.0 * ops.sum(is_object)) + _LITTLE)


@dataclasses.dataclass(frozen=True)
class MaskrcnnLoss:
    """Cross entropy of the pixels of masks, the mean over regions with objects."""

    def __call__(
        self,
        mask_outputs: Any,
        mask_targets: Any,
        select_class_targets: Any,
        count: Count = at_hand,
    ) -> Any:
        """The loss, a scalar.

        Args:
            mask_outputs: logits [batch, regions, h, w].
            mask_targets: 0 or 1, [batch, regions, h, w].
            select_class_targets: [batch, regions]; regions with 0 and less do not count.
            count: see `Count`.
        """
        logits, targets = ops.cast(mask_outputs, "float32"), ops.cast(mask_targets, "float32")
        is_object = ops.cast(select_class_targets, "int32") > 0
        weights = ops.cast(is_object, "float32")[..., None, None]
        pixels = ops.sum(weights) * logits.shape[-2] * logits.shape[-1]
        total = ops.sum(cross_entropy(logits, targets) * weights)
        return total / (count(pixels) + _LITTLE)


class MaskRCNNLosses(NamedTuple):
    """What a batch's loss is made of; scalars."""

    total: Any
    """Of all the others, by their weights."""
    rpn_score: Any
    rpn_box: Any
    frcnn_class: Any
    """The mean over the stages of a cascade, as is that of the boxes."""
    frcnn_box: Any
    mask: Any
    """0 without masks."""


def cross_entropy(logits: Any, targets: Any) -> Any:
    """Of one sigmoid, element by element."""
    return ops.softplus(logits) - logits * targets


def huber(errors: Any, delta: float) -> Any:
    """Half of the square of small errors; of larger ones it grows linearly."""
    size = ops.abs(errors)
    return ops.where(size <= delta, 0.5 * ops.square(errors), delta * (size - 0.5 * delta))
