"""Adafactor with factoring, parameter scale, momentum and weight decay each to choose."""

from typing import Any, Optional, Sequence, Tuple

import keras
from keras import ops

from hortus.optimization.lr_schedule import Rate
from hortus.optimization.name_patterns import NamePatterns, Patterns


@keras.saving.register_keras_serializable(package="Hortus")
class Adafactor(keras.optimizers.Optimizer):
    """Adafactor (Shazeer & Stern 2018, arXiv:1804.04235) with an explicit learning rate.

    `keras.optimizers.Adafactor` always factors, always scales by the parameter and has no
    momentum; here each is an option.

    Args:
        learning_rate: a constant or a schedule; relative to the size of the weights when
            `multiply_by_parameter_scale`.
        factored: whether large variables keep row and column means of the squared gradients
            instead of all of them.
        multiply_by_parameter_scale: whether a step is multiplied with the root mean square of the
            weights, at least `epsilon2`.
        beta1: decay of the momentum; None for none, which also saves its memory.
        decay_rate: the second moment of step t decays by `1 - t ** -decay_rate`.
        step_offset: global step at which t begins, for fine-tuning.
        clipping_threshold: largest root mean square of an update; None for no limit.
        min_dim_size_to_factor: variables whose second largest dimension is smaller stay whole.
        epsilon1: added to squared gradients.
        epsilon2: smallest parameter scale.
        weight_decay: share of a weight, times the learning rate, taken off at every step.
        include_in_weight_decay: names that decay; all when None.
        **kwargs: what `keras.optimizers.Optimizer` takes.
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        factored: bool = True,
        multiply_by_parameter_scale: bool = True,
        beta1: Optional[float] = None,
        decay_rate: float = 0.8,
        step_offset: int = 0,
        clipping_threshold: Optional[float] = 1.0,
        min_dim_size_to_factor: int = 128,
        epsilon1: float = 1e-30,
        epsilon2: float = 1e-3,
        weight_decay: Optional[float] = None,
        include_in_weight_decay: Patterns = None,
        name: str = "Adafactor",
        **kwargs: Any,
    ):
        super().__init__(
            learning_rate=learning_rate, weight_decay=weight_decay or None, name=name, **kwargs
        )
        self.factored = factored
        self.multiply_by_parameter_scale = multiply_by_parameter_scale
        self.beta1 = beta1
        self.decay_rate = decay_rate
        self.step_offset = step_offset
        self.clipping_threshold = clipping_threshold
        self.min_dim_size_to_factor = min_dim_size_to_factor
        self.epsilon1 = epsilon1
        self.epsilon2 = epsilon2
        self.include_in_weight_decay = include_in_weight_decay

    def build(self, variables: Sequence[Any]) -> None:
        """Creates the second moments, whole or as row and column means, and the momentums."""
        if self.built:
            return
        include = NamePatterns(self.include_in_weight_decay)
        if include:
            self.exclude_from_weight_decay(var_list=[v for v in variables if not include.match(v)])
        super().build(variables)
        self._seconds = [self._second_moment(v) for v in variables]
        self._momentums = self.add_optimizer_variables(variables, "momentum") if self.beta1 else []

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable and its moments."""
        rate, gradient = (ops.cast(x, variable.dtype) for x in (learning_rate, gradient))
        index = self._get_variable_index(variable)
        update = gradient * self._inverse_root(gradient, self._seconds[index])
        if self.clipping_threshold:
            update = update / ops.maximum(1.0, _rms(update) / self.clipping_threshold)
        if self.multiply_by_parameter_scale:
            rate = rate * ops.maximum(_rms(ops.convert_to_tensor(variable)), self.epsilon2)
        update = rate * update
        if self.beta1:
            slot = self._momentums[index]
            update = self.beta1 * slot + (1.0 - self.beta1) * update
            self.assign(slot, update)
        self.assign_sub(variable, update)

    def get_config(self) -> dict:
        """The arguments of the constructor."""
        return {
            **super().get_config(),
            "factored": self.factored,
            "multiply_by_parameter_scale": self.multiply_by_parameter_scale,
            "beta1": self.beta1,
            "decay_rate": self.decay_rate,
            "step_offset": self.step_offset,
            "clipping_threshold": self.clipping_threshold,
            "min_dim_size_to_factor": self.min_dim_size_to_factor,
            "epsilon1": self.epsilon1,
            "epsilon2": self.epsilon2,
            "include_in_weight_decay": self.include_in_weight_decay,
        }

    def _second_moment(self, variable: Any) -> list:
        """[rows, columns] of a variable to factor, or [whole]."""
        axes = self._factored_axes(tuple(variable.shape))
        if axes is None:
            return [self.add_variable_from_reference(variable, "velocity")]
        name = variable.path.replace("/", "_")
        shapes = [
            tuple(size for i, size in enumerate(variable.shape) if i != axis) for axis in axes
        ]
        return [
            self.add_variable(shape, dtype=variable.dtype, name=f"{name}_{means}")
            for shape, means in zip(shapes, ("velocity_rows", "velocity_columns"), strict=True)
        ]

    def _factored_axes(self, shape: Tuple[int, ...]) -> Optional[Tuple[int, int]]:
        """The largest axis and the one after it, if this shape is to be factored."""
        if not self.factored or len(shape) < 2:
            return None
        second, largest = sorted(range(len(shape)), key=lambda axis: shape[axis])[-2:]
        return (largest, second) if shape[second] >= self.min_dim_size_to_factor else None

    def _inverse_root(self, gradient: Any, moment: list) -> Any:
        """Moves the second moment on and gives one over its root, in the gradient's shape."""
        step = ops.maximum(self.iterations + 1 - self.step_offset, 1)
        decay = 1.0 - ops.power(ops.cast(step, gradient.dtype), -self.decay_rate)
        squares = ops.square(gradient) + self.epsilon1
        axes = self._factored_axes(tuple(gradient.shape))
        if axes is None:
            whole = decay * moment[0] + (1.0 - decay) * squares
            self.assign(moment[0], whole)
            return ops.rsqrt(whole)
        means = []
        for slot, axis in zip(moment, axes, strict=True):
            mean = decay * slot + (1.0 - decay) * ops.mean(squares, axis=axis)
            self.assign(slot, mean)
            means.append(ops.expand_dims(mean, axis))
        rows, columns = means
        # The product of both means counts the overall mean twice.
        return ops.rsqrt(rows / ops.mean(rows, axis=axes[1], keepdims=True)) * ops.rsqrt(columns)


def _rms(value: Any) -> Any:
    return ops.sqrt(ops.mean(ops.square(value)))
