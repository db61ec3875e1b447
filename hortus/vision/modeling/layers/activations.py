"""Activations by name: those below, and every one of Keras."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from hortus import registry
from hortus.engine import kernels

Activation = Callable[[Any], Any]

_ACTIVATIONS = registry.Registry("activation")


def register_activation(name: str) -> Callable[[Activation], Activation]:
    """Decorates a function of one tensor, to be used in configs as `activation: <name>`.

    Register it with `keras.saving.register_keras_serializable` too, so that models with it can be
    saved.
    """
    return registry.register(_ACTIVATIONS, name)


@register_activation("approximate_gelu")
@keras.saving.register_keras_serializable(package="Hortus")
def approximate_gelu(x: Any) -> Any:
    """GELU by its tanh approximation, as vision transformers were trained with."""
    return kernels.in_one_pass(_approximate_gelu, x)


def _approximate_gelu(x: Any) -> Any:
    return ops.gelu(x, approximate=True)


@register_activation("swish")
@keras.saving.register_keras_serializable(package="Hortus")
def swish(x: Any) -> Any:
    """The product of x and its sigmoid (Ramachandran et al. 2017)."""
    return kernels.in_one_pass(keras.activations.silu, x)


@register_activation("hard_swish")
@keras.saving.register_keras_serializable(package="Hortus")
def hard_swish(x: Any) -> Any:
    """Swish of straight lines (Howard et al. 2019)."""
    return kernels.in_one_pass(keras.activations.hard_silu, x)


@register_activation("squared_relu")
@keras.saving.register_keras_serializable(package="Hortus")
def squared_relu(x: Any) -> Any:
    """The square of ReLU (So et al. 2021)."""
    return ops.square(ops.relu(x))


@register_activation("hard_sigmoid")
@keras.saving.register_keras_serializable(package="Hortus")
def hard_sigmoid(x: Any) -> Any:
    """A sigmoid of straight lines, of the rounded slope that mobile networks were trained with."""
    return ops.relu6(x + 3.0) * 0.16667


for _name, _activation in {
    "exact_hard_sigmoid": keras.activations.hard_sigmoid,
    "gelu": keras.activations.gelu,
    "identity": keras.activations.linear,
    "leaky_relu": keras.activations.leaky_relu,
    "linear": keras.activations.linear,
    "mish": keras.activations.mish,
    "relu": keras.activations.relu,
    "relu6": keras.activations.relu6,
    "simple_swish": swish,
}.items():
    register_activation(_name)(_activation)


def get(activation: str | Activation | None) -> Activation:
    """The activation of that name; a function is returned as it is, None is the identity.

    Raises:
        RegistryError: neither hortus nor Keras knows the name.
    """
    if activation is None:
        return keras.activations.linear
    if callable(activation):
        return activation
    if activation not in _ACTIVATIONS:
        try:
            return keras.activations.get(activation)
        except ValueError:
            pass  # the look-up below names what is near
    return registry.lookup(_ACTIVATIONS, activation)
