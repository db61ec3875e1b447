"""Layers and models whose config is their constructor's arguments."""

import inspect
from typing import Any

import keras


class Configurable:
    """Gives a Keras class its `get_config` and `from_config`, when its attributes keep one rule.

    The rule is that of Keras: each constructor argument is kept in a public attribute of the same
    name. Put this class before the Keras one: `class Block(Configurable, keras.layers.Layer)`.
    """

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()  # type: ignore[misc]
        for name in argument_names(type(self)):
            config[name] = keras.saving.serialize_keras_object(getattr(self, name))
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        del custom_objects  # Keras has put them in scope already
        return cls(**{name: _revive(value) for name, value in config.items()})


def argument_names(cls: type) -> list[str]:
    """Names of the constructor arguments of `cls` and of its parents that are Configurable."""
    parameters = [
        parameter
        for parent in cls.__mro__
        if issubclass(parent, Configurable) and "__init__" in vars(parent)
        for parameter in inspect.signature(parent.__init__).parameters.values()
    ]
    named = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
    return [name for name in dict.fromkeys(named) if name != "self"]


def _revive(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return keras.saving.deserialize_keras_object(value)
    return value
