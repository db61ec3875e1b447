"""LARS: layer-wise adaptive rate scaling for large batches."""

from typing import Any, Sequence

import keras
from keras import ops

from hortus.optimization.layer_adaptation import LayerAdaptiveOptimizer, trust_ratio
from hortus.optimization.lr_schedule import Rate


@keras.saving.register_keras_serializable(package="Hortus")
class LARS(LayerAdaptiveOptimizer):
    """LARS (You et al. 2017, arXiv:1708.03888).

    With `g` the gradient plus weight decay, the classic form is
    `v = momentum * v + lr * eeta * |w| / |g| * g; w -= v`. The other form keeps the learning rate
    and the ratio out of the momentum: `v = momentum * v + g; w -= lr * eeta * |w| / |v| * v`.
    Variables that do not adapt take the ratio (with `eeta`) as 1.

    Args:
        learning_rate: a constant or a schedule.
        momentum: share of the last step that stays.
        eeta: share of a layer's norm that a step of learning rate 1 may change.
        nesterov: whether the step looks one momentum ahead.
        classic_momentum: whether the learning rate is inside the momentum.
        **kwargs: what `LayerAdaptiveOptimizer` takes.
    """

    def __init__(
        self,
        learning_rate: Rate = 0.01,
        momentum: float = 0.9,
        eeta: float = 0.001,
        nesterov: bool = False,
        classic_momentum: bool = True,
        name: str = "LARS",
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.momentum = momentum
        self.eeta = eeta
        self.nesterov = nesterov
        self.classic_momentum = classic_momentum

    def build(self, variables: Sequence[Any]) -> None:
        """Creates one momentum per variable."""
        if self.built:
            return
        super().build(variables)
        self._momentums = self.add_optimizer_variables(variables, "momentum")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable and its momentum."""
        rate = ops.cast(learning_rate, variable.dtype)
        gradient = self.decayed(ops.cast(gradient, variable.dtype), variable)
        slot = self._momentums[self._get_variable_index(variable)]
        if self.classic_momentum:
            gradient = gradient * rate * self._ratio(variable, gradient)
        velocity = self.momentum * slot + gradient
        self.assign(slot, velocity)
        step = self.momentum * velocity + gradient if self.nesterov else velocity
        if not self.classic_momentum:
            step = step * rate * self._ratio(variable, step)
        self.assign_sub(variable, step)

    def _ratio(self, variable: Any, update: Any) -> Any:
        if not self.adapts(variable):
            return 1.0
        return self.eeta * trust_ratio(ops.convert_to_tensor(variable), update)

    def get_config(self) -> dict:
        """The arguments of the constructor."""
        return {
            **super().get_config(),
            "momentum": self.momentum,
            "eeta": self.eeta,
            "nesterov": self.nesterov,
            "classic_momentum": self.classic_momentum,
        }
