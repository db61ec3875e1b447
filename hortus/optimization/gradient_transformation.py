"""Change gradients on their way into an optimizer."""

from typing import Any, Callable, List, Optional, Sequence, Tuple

import keras

from hortus.optimization.gradient_clipping import clip_by_value
from hortus.optimization.optimizer_wrapper import OptimizerWrapper

GradsAndVars = List[Tuple[Any, Any]]
Transformer = Callable[[GradsAndVars], GradsAndVars]


@keras.saving.register_keras_serializable(package="Hortus")
class GradientTransformation(OptimizerWrapper):
    """Calls functions on the gradients, then the inner optimizer, which clips and applies.

    Args:
        inner_optimizer: the optimizer that receives the result.
        transformers: functions from a list of (gradient, variable) to such a list, called in order.
            A gradient may be None. A fixed loss scale has been taken out.
        name: name of the wrapper.
    """

    def __init__(
        self,
        inner_optimizer: keras.optimizers.Optimizer,
        transformers: Sequence[Transformer],
        name: str = "GradientTransformation",
    ):
        super().__init__(inner_optimizer, name=name)
        self.transformers = tuple(transformers)

    @property
    def own_variables(self) -> List[Any]:
        """What the transformers remember, such as the state of a random generator."""
        return [
            v for transformer in self.transformers for v in getattr(transformer, "variables", ())
        ]

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Transforms, then updates the weights."""
        self.build_for(trainable_variables)
        if trainable_variables is None:
            trainable_variables = self._trainable_variables
        scale = self.loss_scale_factor or 1.0
        pairs = list(zip(_scaled(grads, 1.0 / scale), trainable_variables, strict=True))
        for transform in self.transformers:
            pairs = list(transform(pairs))
        grads, variables = zip(*pairs, strict=True)
        # The inner optimizer takes the scale out itself.
        self.inner_optimizer.apply(_scaled(grads, scale), list(variables))

    def get_config(self) -> dict:
        """The arguments of the constructor; the functions must be registered with Keras."""
        functions = [keras.saving.serialize_keras_object(t) for t in self.transformers]
        return {**super().get_config(), "transformers": functions}

    @classmethod
    def from_config(
        cls, config: dict, custom_objects: Optional[dict] = None
    ) -> "GradientTransformation":
        """The reverse of `get_config`."""
        functions = [
            keras.saving.deserialize_keras_object(t, custom_objects=custom_objects)
            for t in config["transformers"]
        ]
        return super().from_config({**config, "transformers": functions}, custom_objects)


@keras.saving.register_keras_serializable(package="Hortus")
class ClipByValue:
    """A transformer that limits every element of the gradients to `-value .. value`."""

    def __init__(self, value: float):
        self.value = value

    def __call__(self, grads_and_vars: GradsAndVars) -> GradsAndVars:
        grads, variables = zip(*grads_and_vars, strict=True)
        return list(zip(clip_by_value(grads, self.value), variables, strict=True))

    def get_config(self) -> dict:
        """The arguments of the constructor."""
        return {"value": self.value}

    @classmethod
    def from_config(cls, config: dict) -> "ClipByValue":
        """The reverse of `get_config`."""
        return cls(**config)


def _scaled(grads: Sequence[Any], factor: float) -> List[Any]:
    return list(grads) if factor == 1.0 else [None if g is None else g * factor for g in grads]
