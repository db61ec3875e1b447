"""Where TensorFlow computes what is being traced."""

import tensorflow as tf
from tensorflow.python.ops import control_flow_util  # no public way tells that XLA is compiling


def runs_on_cpu(weights: tf.Tensor) -> bool:
    """Whether float32 is computed with by TensorFlow's kernels for CPUs.

    On GPUs, cuDNN chooses its algorithms by itself.
    """
    if weights.dtype != tf.float32 or is_compiled_by_xla():
        return False
    return not tf.config.list_logical_devices("GPU")


def is_compiled_by_xla() -> bool:
    """Whether XLA compiles the function that the caller is part of."""
    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())
