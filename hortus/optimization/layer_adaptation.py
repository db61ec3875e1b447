"""What LARS and LAMB share: a step as large as the layer's weights allow, and names left out."""

from typing import Any, List, Sequence

import keras
from keras import ops

from hortus.optimization.name_patterns import NamePatterns, Patterns


def trust_ratio(weights: Any, update: Any) -> Any:
    """`|weights| / |update|` (L2 norms, a scalar), or 1 where either of them is zero."""
    weights_norm, update_norm = _norm(weights), _norm(update)
    usable = ops.logical_and(weights_norm > 0, update_norm > 0)
    # The inner `where` keeps the division away from zero, the outer one gives the answer.
    ratio = weights_norm / ops.where(usable, update_norm, ops.ones_like(update_norm))
    return ops.where(usable, ratio, ops.ones_like(ratio))


class LayerAdaptiveOptimizer(keras.optimizers.Optimizer):
    """Base of optimizers with weight decay inside the update and a trust ratio per variable.

    Args:
        learning_rate: a constant or a schedule.
        weight_decay_rate: share of a weight that is added to its update.
        exclude_decay: names that do not decay.
        exclude_adaptation: names that take the learning rate as it is; those in `exclude_decay`
            when there are none.
        **kwargs: what `keras.optimizers.Optimizer` takes.
    """

    def __init__(
        self,
        learning_rate: Any,
        weight_decay_rate: float = 0.0,
        exclude_decay: Patterns = None,
        exclude_adaptation: Patterns = None,
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.weight_decay_rate = weight_decay_rate
        self.exclude_decay = exclude_decay
        self.exclude_adaptation = exclude_adaptation
        self._decays: List[bool] = []
        self._adapts: List[bool] = []

    def build(self, variables: Sequence[Any]) -> None:
        """Settles by name which variables decay and which adapt."""
        super().build(variables)
        decay = NamePatterns(self.exclude_decay)
        adaptation = NamePatterns(self.exclude_adaptation) or decay
        self._decays = [bool(self.weight_decay_rate) and not decay.match(v) for v in variables]
        self._adapts = [not adaptation.match(v) for v in variables]

    def decayed(self, update: Any, variable: Any) -> Any:
        """`update` with the variable's weight decay added, if it decays."""
        if not self._decays[self._get_variable_index(variable)]:
            return update
        return update + self.weight_decay_rate * ops.convert_to_tensor(variable)

    def adapts(self, variable: Any) -> bool:
        """Whether the step of this variable is scaled by its trust ratio."""
        return self._adapts[self._get_variable_index(variable)]

    def get_config(self) -> dict:
        """The arguments of the constructor."""
        config = super().get_config()
        # Keras' decay outside of the update is not offered here.
        config.pop("weight_decay")
        return {
            **config,
            "weight_decay_rate": self.weight_decay_rate,
            "exclude_decay": self.exclude_decay,
            "exclude_adaptation": self.exclude_adaptation,
        }


def _norm(value: Any) -> Any:
    return ops.sqrt(ops.sum(ops.square(value)))
