"""Gradients of L2 penalties, computed when the gradient that they are added to is there.

A penalty's gradient is a multiple of the weights. TensorFlow would compute it when a step begins
and hold it, a copy of all weights, while memory is needed most.
"""

import contextlib
import contextvars
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from hortus.engine import kernels

Penalties = list[tuple[Any, tf.Tensor]]
"""Variables, and the factors that their values are gradients by."""

_open: contextvars.ContextVar[Penalties | None] = contextvars.ContextVar("open", default=None)


@contextlib.contextmanager
def deferred() -> Iterator[Penalties]:
    """While it is open, gradients of penalties are written down here instead of being computed."""
    penalties: Penalties = []
    token = _open.set(penalties)
    try:
        yield penalties
    finally:
        _open.reset(token)


@kernels.half_sum_of_squares.on("tensorflow")
def half_sum_of_squares(inputs: Any) -> tf.Tensor:
    """Half of the sum of all squares; `inputs` may be a variable of Keras."""
    penalties, variable = _open.get(), getattr(inputs, "value", None)
    if penalties is None or not isinstance(variable, tf.Variable):
        return tf.nn.l2_loss(tf.convert_to_tensor(inputs))

    @tf.custom_gradient
    def penalty(value: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> None:
            penalties.append((variable, upstream))

        return tf.nn.l2_loss(value), gradient

    return penalty(tf.convert_to_tensor(inputs))


def add(
    gradients: Sequence[Any], variables: Sequence[tf.Variable], penalties: Penalties
) -> list[Any]:
    """The gradients by some variables, with those of the penalties added."""
    factors: dict[int, Any] = {}
    for variable, factor in penalties:
        factors[id(variable)] = factors.get(id(variable), 0.0) + factor
    return [
        gradient if id(variable) not in factors else _sum(gradient, variable, factors[id(variable)])
        for gradient, variable in zip(gradients, variables, strict=True)
    ]


def _sum(gradient: Any, variable: tf.Variable, factor: tf.Tensor) -> tf.Tensor:
    if gradient is None:
        return factor * variable
    gradient = tf.convert_to_tensor(gradient)
    with tf.control_dependencies([gradient]):
        return gradient + factor * variable.read_value()
