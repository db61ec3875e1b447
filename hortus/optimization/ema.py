"""Exponential moving average of weights, kept beside the optimizer and swapped in to evaluate."""

import contextlib
from typing import Any, Dict, Iterator, List, Sequence

import keras
from keras import ops

from hortus.optimization.optimizer_wrapper import OptimizerWrapper

_LOW_PRECISION = ("float16", "bfloat16")


@keras.saving.register_keras_serializable(package="Hortus")
class ExponentialMovingAverage(OptimizerWrapper):
    """Updates the weights with the inner optimizer, then moves an average of them along.

    After step t, counted from 1, `average = decay * average + (1 - decay) * weights`. The first
    update, and every one before `start_step`, copies the weights: an average has no zeros in it.
    A step that the inner optimizer skips, as for a loss scale that was too large, is no update.

    The average is part of `variables`, so a checkpoint of the optimizer holds it. On several
    replicas each one averages its own copy of the weights, without communication; weights that are
    alike on all of them have alike averages.

    Typical use, with a task's training step none the wiser:

        optimizer = ExponentialMovingAverage(keras.optimizers.SGD(0.1), average_decay=0.9999)
        optimizer.shadow_copy(model)
        ...
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        ...
        with optimizer.averaged_weights():
            evaluate(model)

    Args:
        inner_optimizer: the optimizer that updates the weights.
        average_decay: share of the average that stays, 0 to 1.
        start_step: step from which on weights are averaged.
        dynamic_decay: whether the decay is at most `(1 + n) / (10 + n)` with `n = t - start_step`,
            so that a young average forgets quickly.
        trainable_weights_only: whether the other weights, such as the statistics of batch norm,
            are left out.
        name: name of the wrapper.
    """

    def __init__(
        self,
        inner_optimizer: keras.optimizers.Optimizer,
        average_decay: float = 0.99,
        start_step: int = 0,
        dynamic_decay: bool = True,
        trainable_weights_only: bool = True,
        name: str = "ExponentialMovingAverage",
    ):
        super().__init__(inner_optimizer, name=name)
        if not 0 <= average_decay <= 1:
            raise ValueError(f"average_decay is {average_decay}, expected a value from 0 to 1")
        self.average_decay = average_decay
        self.start_step = start_step
        self.dynamic_decay = dynamic_decay
        self.trainable_weights_only = trainable_weights_only
        self.is_swapped = False
        self._averaged: List[Any] = []
        self._averages: List[Any] = []
        self._unrounded: Dict[int, Any] = {}
        self._updates = self.add_variable((), dtype="int", name="updates")

    @property
    def own_variables(self) -> List[Any]:
        """The number of updates, then the averages."""
        return [self._updates, *self._averages]

    @property
    def averaged_variables(self) -> List[Any]:
        """The weights that are averaged."""
        return list(self._averaged)

    @property
    def averages(self) -> List[Any]:
        """The average of each of `averaged_variables`; while swapped in, the weights."""
        return list(self._averages)

    def shadow_copy(self, model: keras.Model) -> None:
        """Begins to average the weights of a built model. Call it where variables are created."""
        weights = model.trainable_weights if self.trainable_weights_only else model.weights
        weights = [w for w in weights if keras.backend.is_float_dtype(w.dtype)]
        if not self._averages:
            self._create_averages(weights)
        elif {id(w) for w in weights} != {id(w) for w in self._averaged}:
            raise ValueError(f"{self.name} already averages {len(self._averaged)} other weights")

    def build(self, variables: Sequence[Any]) -> None:
        """Creates the averages of `variables`, unless `shadow_copy` did it for a model."""
        if self.built:
            return
        super().build(variables)
        if not self._averages and self.trainable_weights_only:
            self._create_averages(variables)

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Updates the weights, then the average."""
        self.build_for(trainable_variables)
        # A copy: what `convert_to_tensor` gives may be the variable itself, and move on with it.
        before = ops.copy(self.iterations)
        self.inner_optimizer.apply(grads, trainable_variables)
        after = ops.copy(self.iterations)
        self._update(after, is_step=after > before)

    def update_average(self, step: Any) -> None:
        """Moves the average towards the present weights, which are those after `step` steps.

        `apply` does so itself; this is for who updates the weights otherwise.
        """
        self._update(ops.convert_to_tensor(step), is_step=True)

    def swap_weights(self) -> None:
        """Exchanges weights and averages, exactly: twice leaves every bit as it was.

        Call it between steps, on several replicas outside of them. Before the first update the
        average is taken to be the weights.
        """
        self._require_averages()
        if not self.is_swapped and int(self._updates.numpy()) == 0:
            for variable, average in zip(self._averaged, self._averages, strict=True):
                average.assign(ops.cast(variable, average.dtype))
        for i, (variable, average) in enumerate(zip(self._averaged, self._averages, strict=True)):
            weights, mean = ops.copy(variable), ops.copy(average)
            variable.assign(ops.cast(mean, variable.dtype))
            average.assign(self._unrounded.pop(i, ops.cast(weights, average.dtype)))
            if variable.dtype != average.dtype and not self.is_swapped:
                self._unrounded[i] = mean
        self.is_swapped = not self.is_swapped

    @contextlib.contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """The model has its averaged weights inside of the `with` block."""
        self.swap_weights()
        try:
            yield
        finally:
            self.swap_weights()

    def stateless_apply(
        self, optimizer_variables: Any, grads: Any, trainable_variables: Any
    ) -> Any:
        """As in Keras; only for averages of weights that the optimizer updates."""
        known = {id(v) for v in self._trainable_variables}
        if any(id(v) not in known for v in self._averaged):
            raise ValueError(
                f"{self.name} also averages weights that are not trainable, whose values "
                "`stateless_apply` does not receive. Call `apply_gradients` in a "
                "`keras.StatelessScope` that knows all weights, or set trainable_weights_only."
            )
        return super().stateless_apply(optimizer_variables, grads, trainable_variables)

    def get_config(self) -> dict:
        """The arguments of the constructor."""
        return {
            **super().get_config(),
            "average_decay": self.average_decay,
            "start_step": self.start_step,
            "dynamic_decay": self.dynamic_decay,
            "trainable_weights_only": self.trainable_weights_only,
        }

    def _create_averages(self, weights: Sequence[Any]) -> None:
        for weight in weights:
            if weight.dtype in _LOW_PRECISION:
                # A small change of a large average would be lost in its rounding.
                name = f"{weight.path.replace('/', '_')}_average"
                average = self.add_variable(weight.shape, dtype="float32", name=name)
            else:
                average = self.add_variable_from_reference(weight, "average")
            self._averaged.append(weight)
            self._averages.append(average)

    def _require_averages(self) -> None:
        if not self._averages:
            raise ValueError(
                f"{self.name} has nothing to average yet: call shadow_copy(model) before training"
            )

    def _update(self, step: Any, is_step: Any) -> None:
        self._require_averages()
        if self.is_swapped:
            raise RuntimeError("the averaged weights are swapped in: swap back before training on")
        decay = self._decay(step, is_step)
        for variable, average in zip(self._averaged, self._averages, strict=True):
            weights = ops.cast(variable, average.dtype)
            # This form copies exactly for a decay of 0, and weights that stand still stay.
            average.assign(weights + ops.cast(decay, average.dtype) * (average - weights))
        self._updates.assign_add(ops.cast(is_step, self._updates.dtype))

    def _decay(self, step: Any, is_step: Any) -> Any:
        """The share of the average that stays, a float32 scalar."""
        decay = ops.convert_to_tensor(self.average_decay, dtype="float32")
        if self.dynamic_decay:
            age = ops.cast(ops.maximum(step - self.start_step, 0), "float32")
            decay = ops.minimum(decay, (1.0 + age) / (10.0 + age))
        is_copy = ops.logical_or(step < self.start_step, ops.equal(self._updates, 0))
        decay = ops.where(is_copy, 0.0, decay)
        return ops.where(is_step, decay, 1.0)
