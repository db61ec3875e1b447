"""Runs models as an exported one is run: without knowing the sizes of its inputs beforehand."""

from collections.abc import Callable
from typing import Any

import keras


def call_with_open_sizes(function: Callable[[Any], Any], inputs: Any) -> Any:
    """Calls `function`, compiled for inputs of any size, all but the last axis.

    On JAX, which compiles for known sizes only, it is just called.

    Args:
        function: a model, or any function of tensors.
        inputs: an array, or a nested structure of arrays.
    """
    if keras.backend.backend() != "tensorflow":
        return function(inputs)
    import tensorflow as tf

    def signature(x: Any) -> tf.TensorSpec:
        return tf.TensorSpec((*[None] * (x.ndim - 1), x.shape[-1]), x.dtype)

    specs = keras.tree.map_structure(signature, inputs)
    return tf.function(function, input_signature=[specs])(inputs)
