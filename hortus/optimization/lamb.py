"""LAMB: Adam with a trust ratio per layer, for large batches."""

from typing import Any, Sequence

import keras
from keras import ops

from hortus.optimization.layer_adaptation import LayerAdaptiveOptimizer, trust_ratio
from hortus.optimization.lr_schedule import Rate


@keras.saving.register_keras_serializable(package="Hortus")
class LAMB(LayerAdaptiveOptimizer):
    """LAMB (You et al. 2019, arXiv:1904.00962).

    `keras.optimizers.Lamb` decays the weights outside of the trust ratio and for all variables
    alike; the paper decays inside, and this class leaves out variables by name.

    Args:
        learning_rate: a constant or a schedule.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the root of the second moment.
        **kwargs: what `LayerAdaptiveOptimizer` takes.
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        name: str = "LAMB",
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def build(self, variables: Sequence[Any]) -> None:
        """Creates two moments per variable."""
        if self.built:
            return
        super().build(variables)
        self._firsts, self._seconds = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable and its moments."""
        dtype = variable.dtype
        rate, gradient = ops.cast(learning_rate, dtype), ops.cast(gradient, dtype)
        index = self._get_variable_index(variable)
        first = self._unbiased_moment(self._firsts[index], gradient, self.beta_1)
        second = self._unbiased_moment(self._seconds[index], ops.square(gradient), self.beta_2)
        update = self.decayed(first / (ops.sqrt(second) + self.epsilon), variable)
        if self.adapts(variable):
            rate = rate * trust_ratio(ops.convert_to_tensor(variable), update)
        self.assign_sub(variable, rate * update)

    def _unbiased_moment(self, slot: Any, value: Any, beta: float) -> Any:
        """Moves a moment towards `value` and returns it without the pull of its zero start."""
        # The same rounded beta in both places: its error cancels.
        beta = ops.cast(beta, slot.dtype)
        moment = slot + (1.0 - beta) * (value - slot)
        self.assign(slot, moment)
        return moment / (1.0 - ops.power(beta, ops.cast(self.iterations + 1, slot.dtype)))

    def get_config(self) -> dict:
        """The arguments of the constructor."""
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
        }
