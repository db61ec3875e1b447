"""The focal loss (Lin et al. 2017)."""

from typing import Any, Optional

import keras
from keras import ops


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
        reduction: Optional[str] = "sum_over_batch_size",
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
        is_object = y_true == 1
        # How wrong it is, as a logit: p = sigmoid(-wrong) is the probability of the answer.
        wrong = ops.where(is_object, -y_pred, y_pred)
        cross_entropy = ops.softplus(wrong)
        # (1 - p)^gamma as one exponential: cheaper than a power, and exact for tiny 1 - p.
        modulator = ops.exp(self.gamma * (wrong - cross_entropy))
        alpha = ops.cast(ops.where(is_object, self.alpha, 1 - self.alpha), y_pred.dtype)
        return alpha * modulator * cross_entropy

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "alpha": self.alpha, "gamma": self.gamma}
