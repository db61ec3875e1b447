"""Functions of single elements, computed and differentiated in one pass over memory each.

TensorFlow runs one kernel per operation, and on CPUs each of them takes as long as its elements
take from memory and back. XLA makes one loop of a whole function, and one of its gradient, which
computes what it needs of the function again: nothing but the inputs is kept for it.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hortus.engine import kernels
from hortus.engine.tensorflow.placement import runs_on_cpu


@kernels.in_one_pass.on("tensorflow")
def _in_one_pass(function: Callable, *inputs: Any, **constants: Any) -> Any:
    # Compiled in training steps only: exports and evaluations do without.
    if not kernels.FAST_KERNELS.in_training_step:
        return None
    tensors = tuple(tf.convert_to_tensor(x) for x in inputs)
    if not is_possible(tensors) or not runs_on_cpu(tensors[0]):
        return None
    return apply(function, tensors, constants)


def is_possible(inputs: tuple[tf.Tensor, ...]) -> bool:
    """Whether these inputs can be computed with so; XLA compiles anew for each other size."""
    return (
        all(x.shape.is_fully_defined() for x in inputs)
        # XLA does not know one CPU device of a process from another.
        and len(tf.config.list_logical_devices("CPU")) == 1
    )


def apply(function: Callable, inputs: tuple[tf.Tensor, ...], constants: dict[str, Any]) -> Any:
    """`function(*inputs, **constants)`, differentiable by the first input."""
    forward, backward = _compiled(function, tuple(sorted(constants.items())))

    @tf.custom_gradient
    def run(*inputs: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> list[Any]:
            return [backward(upstream, *inputs)] + [None] * (len(inputs) - 1)

        return forward(*inputs), gradient

    return run(*inputs)


@functools.cache
def _compiled(function: Callable, constants: tuple[tuple[str, Any], ...]) -> tuple[Any, Any]:
    function = functools.partial(function, **dict(constants))

    def backward(upstream: tf.Tensor, *inputs: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(inputs[0])
            outputs = function(*inputs)
        return tape.gradient(outputs, inputs[0], upstream)

    options = {"jit_compile": True, "autograph": False}
    return tf.function(function, **options), tf.function(backward, **options)
