"""The loss of a one-stage detector."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
from keras import ops

from hortus.engine import kernels
from hortus.vision.configs import retinanet as configs
from hortus.vision.losses import factory
from hortus.vision.losses.focal import focal_loss
from hortus.vision.ops.anchor_labeler import AnchorLabels

_ATTRIBUTE_DELTA = 1.0


class RetinaNetLosses(NamedTuple):
    """What a batch's loss is made of; scalars."""

    total: Any
    """Of the class, the weighted box and the attribute losses."""
    classes: Any
    boxes: Any
    attributes: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class RetinaNetLoss:
    """Focal loss of the classes, Huber loss of the boxes, both per object that was to be found.

    All are sums over the anchors, divided by the number of anchors with an object and one more, so
    that images without objects count too.

    Args:
        alpha: of the focal loss.
        gamma: of the focal loss.
        delta: error of a box, in box coder units, from which the Huber loss grows linearly.
        box_weight: factor on the box loss.
        attribute_types: `regression` or `classification` by the name of an attribute.
    """

    alpha: float = 0.25
    gamma: float = 1.5
    delta: float = 0.1
    box_weight: float = 50.0
    attribute_types: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __call__(
        self,
        labels: AnchorLabels,
        logits: Any,
        codes: Any,
        attributes: Mapping[str, Any] | None = None,
        normalizer: Any = None,
    ) -> RetinaNetLosses:
        """Compares what the head says with what the anchors should say.

        Args:
            labels: of n anchors; attributes that are classes as [batch, n, 1].
            logits: [batch, n, classes], with the background, class 0.
            codes: of the boxes, [batch, n, 4].
            attributes: [batch, n, size] each.
            normalizer: what to divide by; by default what `num_matched` says of the labels.
        """
        if normalizer is None:
            normalizer = num_matched(labels)
        class_loss = self._focal(labels.classes, logits, labels.class_weights)
        box_loss = _huber(labels.boxes, codes, self.delta, labels.box_weights)
        others = {}
        for name, kind in self.attribute_types.items():
            target, output = labels.attributes[name], (attributes or {})[name]
            if kind == "classification":
                target = ops.cast(target[..., 0], "int32")
                loss = self._focal(target, output, labels.box_weights)
            else:
                loss = _huber(target, output, _ATTRIBUTE_DELTA, labels.box_weights)
            others[name] = loss / normalizer
        class_loss, box_loss = class_loss / normalizer, box_loss / normalizer
        total = class_loss + self.box_weight * box_loss + sum(others.values())
        return RetinaNetLosses(total, class_loss, box_loss, others)

    def _focal(self, classes: Any, logits: Any, weights: Any) -> Any:
        settings = {"alpha": self.alpha, "gamma": self.gamma}
        losses = kernels.in_one_pass(_weighted_focal, logits, classes, weights, **settings)
        return ops.sum(losses)


@factory.register_loss(configs.Losses)
def build_retinanet_loss(task_config: configs.RetinaNetTask) -> RetinaNetLoss:
    """Focal and Huber loss of the anchors."""
    config = task_config.losses
    return RetinaNetLoss(
        config.focal_loss_alpha,
        config.focal_loss_gamma,
        config.huber_loss_delta,
        config.box_loss_weight,
        {head.name: head.type for head in task_config.model.head.attribute_heads},
    )


def _weighted_focal(logits: Any, classes: Any, weights: Any, *, alpha: float, gamma: float) -> Any:
    # Background, -1, is a row of zeros.
    targets = ops.one_hot(classes, logits.shape[-1], dtype=logits.dtype)
    return focal_loss(logits, targets, alpha=alpha, gamma=gamma) * ops.expand_dims(weights, -1)


def num_matched(labels: AnchorLabels) -> Any:
    """The number of anchors with an object in a batch, by their weights, and one more."""
    return ops.sum(labels.box_weights) + 1.0


def _huber(targets: Any, outputs: Any, delta: float, weights: Any) -> Any:
    """Summed over the anchors, the mean over the numbers of each."""
    loss = keras.losses.Huber(delta=delta, reduction="sum")
    return loss(targets, outputs, sample_weight=weights)
