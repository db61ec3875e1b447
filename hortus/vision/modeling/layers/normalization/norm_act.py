"""What every layer of a model is told about normalisation and activation, as one object."""

from typing import Any

import keras

from hortus.vision.modeling.layers import activations
from hortus.vision.modeling.layers.normalization.batch_normalization import BatchNormalization

__all__ = ["BatchNormalization", "NormAct"]


@keras.saving.register_keras_serializable(package="Hortus")
class NormAct:
    """Makes the normalisation and activation layers of a model.

    The arguments are the fields of the `NormActivation` config, so that

        norm_act = NormAct.from_config(norm_activation_config)
        x = norm_act.norm(name="stem_norm")(x)
        x = norm_act.activation(name="stem_activation")(x)

    Args:
        activation: a name that `activations.get` knows, or a function.
        use_sync_bn: take batch statistics over all replicas.
        norm_momentum: share of the old value in the moving statistics, 0 to 1.
        norm_epsilon: added to the variance before the division.
        bn_trainable: False freezes scale, offset and statistics of batch normalisation.
    """

    def __init__(
        self,
        activation: str | activations.Activation = "relu",
        use_sync_bn: bool = False,
        norm_momentum: float = 0.99,
        norm_epsilon: float = 0.001,
        bn_trainable: bool = True,
    ):
        self.activate = activations.get(activation)
        """The activation as a function of a tensor."""
        self.activation_name = activation
        self.use_sync_bn = use_sync_bn
        self.norm_momentum = norm_momentum
        self.norm_epsilon = norm_epsilon
        self.bn_trainable = bn_trainable

    def norm(self, name: str | None = None, **kwargs: Any) -> keras.layers.Layer:
        """A new normalisation layer; `kwargs` go to `BatchNormalization`."""
        layer = BatchNormalization(
            momentum=self.norm_momentum,
            epsilon=self.norm_epsilon,
            synchronized=self.use_sync_bn,
            name=name,
            **kwargs,
        )
        layer.trainable = self.bn_trainable
        return layer

    def activation(self, name: str | None = None, **kwargs: Any) -> keras.layers.Layer:
        """A new activation layer. Inside a layer of your own, call `activate` instead."""
        return keras.layers.Activation(self.activate, name=name, **kwargs)

    def replace(self, **changes: Any) -> "NormAct":
        """A copy with some arguments changed: `norm_act.replace(activation="relu6")`."""
        return type(self)(**{**self._arguments(), **changes})

    def _arguments(self) -> dict[str, Any]:
        return {
            "activation": self.activation_name,
            "use_sync_bn": self.use_sync_bn,
            "norm_momentum": self.norm_momentum,
            "norm_epsilon": self.norm_epsilon,
            "bn_trainable": self.bn_trainable,
        }

    def get_config(self) -> dict[str, Any]:
        config = self._arguments()
        if callable(config["activation"]):
            config["activation"] = keras.saving.serialize_keras_object(config["activation"])
        return config

    @classmethod
    def from_config(cls, config: Any, **changes: Any) -> "NormAct":
        """From a `NormActivation` config, or from what `get_config` returned.

        Args:
            config: has the fields, or the keys, that the constructor takes; others are ignored.
            **changes: arguments to set otherwise, such as `bn_trainable`.
        """
        if not isinstance(config, dict):
            config = config.as_dict()
        known = cls()._arguments()
        arguments = {key: value for key, value in config.items() if key in known} | changes
        if isinstance(arguments.get("activation"), dict):
            arguments["activation"] = keras.saving.deserialize_keras_object(arguments["activation"])
        return cls(**arguments)
