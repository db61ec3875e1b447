"""An optimizer around another optimizer."""

from typing import Any, List, Optional, Sequence

import keras


class OptimizerWrapper(keras.optimizers.Optimizer):
    """Passes everything on to `inner_optimizer`; a subclass adds to `apply`.

    Learning rate, iterations and loss scale are the inner one's. Like Keras' LossScaleOptimizer, it
    keeps the inner one in `inner_optimizer`, and the two can be put around each other.

    Args:
        inner_optimizer: the optimizer that updates the weights, or another wrapper.
        name: name of the wrapper.
    """

    def __init__(self, inner_optimizer: keras.optimizers.Optimizer, name: Optional[str] = None):
        super().__init__(learning_rate=0.0, name=name)
        self.inner_optimizer = inner_optimizer

    @property
    def own_variables(self) -> List[Any]:
        """What the wrapper itself remembers from step to step."""
        return []

    @property
    def variables(self) -> List[Any]:
        """What this wrapper and all inside of it remember. The base class' two are not used."""
        return self.own_variables + self.inner_optimizer.variables

    @property
    def loss_scale_factor(self) -> Optional[float]:
        """The inner optimizer's fixed loss scale."""
        return self.inner_optimizer.loss_scale_factor

    @loss_scale_factor.setter
    def loss_scale_factor(self, factor: Optional[float]) -> None:
        if hasattr(self, "inner_optimizer"):  # not yet when the base class sets its default
            self.inner_optimizer.loss_scale_factor = factor

    @property
    def iterations(self) -> Any:
        """The inner optimizer's step."""
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self) -> Any:
        """The inner optimizer's current learning rate."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        self.inner_optimizer.learning_rate = learning_rate

    def build(self, variables: Sequence[Any]) -> None:
        """Builds the inner optimizer too."""
        if self.built:
            return
        variables = list(variables)
        if not self.inner_optimizer.built:
            self.inner_optimizer.build(variables)
        super().build(variables)

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Updates the weights with the inner optimizer."""
        self.build_for(trainable_variables)
        self.inner_optimizer.apply(grads, trainable_variables)

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        """Updates the weights and returns the step."""
        grads, variables = zip(*grads_and_vars, strict=True)
        self.apply(grads, variables)
        return self.iterations

    def build_for(self, trainable_variables: Any) -> None:
        """Builds at the first `apply`, for who did not build before."""
        if not self.built:
            if trainable_variables is None:
                raise ValueError(f"{self.name} is not built: call build(model.trainable_variables)")
            self.build(trainable_variables)

    def scale_loss(self, loss: Any) -> Any:
        """Scales the loss as the inner optimizer expects it."""
        return self.inner_optimizer.scale_loss(loss)

    def finalize_variable_values(self, var_list: Any) -> None:
        """Passed on."""
        self.inner_optimizer.finalize_variable_values(var_list)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets `variables`, in their order."""
        for variable, weight in zip(self.variables, weights, strict=True):
            variable.assign(weight)

    def get_config(self) -> dict:
        """The arguments of the constructor."""
        inner = keras.saving.serialize_keras_object(self.inner_optimizer)
        return {"inner_optimizer": inner, "name": self.name}

    @classmethod
    def from_config(cls, config: dict, custom_objects: Optional[dict] = None) -> "OptimizerWrapper":
        """The reverse of `get_config`."""
        config = dict(config)
        inner = keras.saving.deserialize_keras_object(
            config.pop("inner_optimizer"), custom_objects=custom_objects
        )
        return cls(inner, **config)
