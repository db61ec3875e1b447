"""The focal loss (Lin et al. 2017)."""

from typing import Any

import keras
from keras import ops

from hortus.engine import kernels


@keras.saving.register_keras_serializable(package="Hortus")
class FocalLoss(keras.losses.Loss):
    """Cross entropy of one sigmoid per class that turns away from what is easy.

    An example that gets its answer right with probability p counts (1 - p)^gamma times: the many
    anchors that plainly show nothing do not swamp the few that show an object.

    Args:
        alpha: weight of objects, 1 - alpha is that of the background; 0 to 1.
        gamma: how much it turns away; 0 is cross entropy.
        reduction: of the losses of all classes and anchors; see `keras.losses.Loss`.
        name: of the loss.
        **kwargs: of `keras.losses.Loss`.
    """

    def __init__(
        self,
        alpha: float = 0.25,
        gamma: float = 1.5,
        reduction: str | None = "sum_over_batch_size",
        name: str = "focal_loss",
        **kwargs: Any,
    ):
        super().__init__(reduction=reduction, name=name, **kwargs)
        self.alpha = alpha
        self.gamma = gamma

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Losses [..., classes].

        Args:
            y_true: [..., classes], 1 for the class of an object and 0 otherwise.
            y_pred: logits [..., classes].
        """
        targets = ops.cast(y_true, y_pred.dtype)
        return kernels.in_one_pass(focal_loss, y_pred, targets, alpha=self.alpha, gamma=self.gamma)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "alpha": self.alpha, "gamma": self.gamma}


def focal_loss(logits: Any, targets: Any, *, alpha: float, gamma: float) -> Any:
    """The loss of each class; see `FocalLoss`."""

    # The gradient in closed form: the many steps of the loss need not be kept for it.
    @ops.custom_gradient
    def focal(logits: Any, targets: Any) -> tuple[Any, Any]:
        is_object = targets == 1
        # How wrong it is, as a logit: p = sigmoid(-wrong) is the probability of the answer.
        wrong = ops.where(is_object, -logits, logits)
        cross_entropy = ops.softplus(wrong)
        # (1 - p)^gamma as one exponential: cheaper than a power, and exact for tiny 1 - p.
        log_wrong = wrong - cross_entropy
        weight = ops.where(is_object, alpha, 1 - alpha) * ops.exp(gamma * log_wrong)
        share = ops.exp(log_wrong)
        slope = weight * (share + gamma * cross_entropy * (1.0 - share))
        slope = ops.where(is_object, -slope, slope)

        def gradient(*upstream: Any, **named: Any) -> tuple[Any, Any]:
            (upper,) = upstream or (named["upstream"],)
            return upper * slope, ops.zeros_like(targets)

        return weight * cross_entropy, gradient

    return focal(logits, targets)
