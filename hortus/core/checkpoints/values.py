"""The values of variables, between Keras and NumPy, on any engine and number of replicas."""

from typing import Any

import keras
import numpy as np

from hortus.core.checkpoints import keras_private
from hortus.core.checkpoints.errors import CheckpointError


def read(variable: Any) -> np.ndarray:
    """A copy of the value that shares no memory with the variable.

    What replicas sum up is summed. Under a strategy of several hosts this is a collective
    operation for such variables: every host has to read them, in the same order.
    """
    # `keras.ops.convert_to_numpy` would copy what TensorFlow has copied already.
    value = np.asarray(variable.numpy())
    # JAX gives read-only views of its own memory, which the next training loop reuses.
    return value if value.flags.owndata and value.flags.writeable else np.array(value)


def is_summed_over_hosts(variable: Any) -> bool:
    """Whether reading the variable may need all hosts."""
    return keras_private.replica_copies(variable) is not None


def assign(variable: Any, value: np.ndarray, holds_sums: bool = True) -> None:
    """Sets a variable on all replicas.

    Args:
        variable: a Keras variable of the shape and dtype of `value`.
        value: its value, as `read` returned it.
        holds_sums: whether this host is the one that takes what hosts sum up; the others take 0.
    """
    copies = keras_private.replica_copies(variable)
    if copies is None:
        variable.assign(value)
        return
    for index, copy in enumerate(copies):
        copy.assign(value if index == 0 and holds_sums else np.zeros_like(value))


def fit_dtype(value: np.ndarray, dtype: str, name: str) -> np.ndarray:
    """Converts between the integers, or between the floats, of two engines or policies.

    The step is int64 on TensorFlow and int32 on JAX, the state of a seed int64 and uint32.

    Raises:
        CheckpointError: an integer does not fit, or the kinds differ.
    """
    old = value.dtype.name
    if old == dtype:
        return value
    if _is_integer(old) and _is_integer(dtype):
        new = value.astype(dtype)
        if not np.array_equal(new.astype(object), value.astype(object)):
            raise CheckpointError(
                f"{name}: values {value.min()} to {value.max()} ({old}) do not fit {dtype}"
            )
        return new
    if keras.backend.is_float_dtype(old) and keras.backend.is_float_dtype(dtype):
        return value.astype(dtype)
    raise CheckpointError(f"{name} is {old} in the checkpoint and {dtype} here")


def loses_precision(old: str, new: str) -> bool:
    """Whether a float of dtype `old` may not survive in dtype `new`."""
    if old == new or not keras.backend.is_float_dtype(old):
        return False
    bits = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}
    exponent = {"float64": 11, "float32": 8, "float16": 5, "bfloat16": 8}
    return bits.get(new, 0) < bits.get(old, 0) or exponent.get(new, 0) < exponent.get(old, 0)


def _is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))
