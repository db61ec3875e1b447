"""The TensorFlow side of `hortus.engine.kernels`."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import control_flow_util  # no public way tells that XLA is compiling

from hortus.engine.tensorflow import (
    convolutions,
    normalized_convolution,
    one_pass,
    weight_decay,
    winograd,
)

_FUSABLE = ("float32", "bfloat16", "float16")
# Below this, TensorFlow silently raises epsilon, as cuDNN asks for it.
_LEAST_EPSILON = 1.001e-5
_LEAST_SPEED_UP = 1.05
"""Expected of Winograd's algorithm, which takes more memory, to choose it."""


def convolution_3x3(
    inputs: Sequence[Any], kernel: Any, strides: tuple[int, int]
) -> list[Any] | None:
    """See `hortus.engine.kernels.convolution_3x3`."""
    inputs, kernel = [tf.convert_to_tensor(x) for x in inputs], tf.convert_to_tensor(kernel)
    if not _runs_on_cpu(kernel):
        return None
    if strides == (1, 1) and winograd.speed_up(inputs, kernel) >= _LEAST_SPEED_UP:
        return winograd.convolution(inputs, kernel)
    if len(inputs) == 1 and convolutions.is_3x3_faster(inputs[0], kernel, strides):
        return [convolutions.convolution_3x3(inputs[0], kernel, strides)]
    return None


def convolution_1x1(inputs: Any, kernel: Any, strides: tuple[int, int]) -> Any:
    """See `hortus.engine.kernels.convolution_1x1`."""
    inputs, kernel = tf.convert_to_tensor(inputs), tf.convert_to_tensor(kernel)
    if not _runs_on_cpu(kernel):
        return None
    return convolutions.convolution_1x1(inputs, kernel, strides)


def normalized_convolution_1x1(
    inputs: Any, kernel: Any, strides: tuple[int, int], gamma: Any, beta: Any, *, epsilon: float
) -> tuple[Any, Any, Any] | None:
    """See `hortus.engine.kernels.normalized_convolution_1x1`."""
    inputs, kernel = tf.convert_to_tensor(inputs), tf.convert_to_tensor(kernel)
    if not normalized_convolution.is_faster(inputs, kernel, strides) or not _runs_on_cpu(kernel):
        return None
    gamma, beta = tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta)
    return normalized_convolution.convolution(inputs, kernel, strides, gamma, beta, epsilon=epsilon)


def fused_batch_norm(
    inputs: Any,
    gamma: Any,
    beta: Any,
    *,
    epsilon: float,
    mean: Any = None,
    variance: Any = None,
) -> tuple[Any, Any, Any] | None:
    """See `hortus.engine.kernels.fused_batch_norm`."""
    inputs = tf.convert_to_tensor(inputs)
    if inputs.dtype.name not in _FUSABLE or epsilon < _LEAST_EPSILON:
        return None
    gamma, beta = tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta)
    # The kernel wants four axes; which of them the elements come from makes no difference.
    images = inputs
    if inputs.shape.rank != 4:
        images = tf.reshape(inputs, [-1, 1, 1, inputs.shape[-1]])
    training = mean is None
    if training:
        mean = variance = tf.zeros([0], tf.float32)
    outputs, batch_mean, batch_variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=images,
        scale=gamma,
        offset=beta,
        mean=mean,
        variance=variance,
        epsilon=epsilon,
        exponential_avg_factor=1.0,
        is_training=training,
    )
    if images is not inputs:
        outputs = tf.reshape(outputs, tf.shape(inputs))
        outputs.set_shape(inputs.shape)
    if not training:
        return outputs, mean, variance
    # The kernel normalises by the population variance and reports the sample variance.
    count = tf.cast(tf.size(images) // images.shape[-1], tf.float32)
    return outputs, batch_mean, batch_variance * ((count - 1.0) / count)


def non_max_suppression(
    boxes: Any,
    scores: Any,
    *,
    iou_threshold: float,
    score_threshold: float,
    max_detections: int,
) -> tuple[Any, Any, Any, Any] | None:
    """See `hortus.engine.kernels.non_max_suppression`."""
    if _is_compiled_by_xla():
        return None  # it cannot compile the kernel
    boxes, scores, classes, count = tf.image.combined_non_max_suppression(
        boxes,
        scores,
        max_output_size_per_class=max_detections,
        max_total_size=max_detections,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        clip_boxes=False,
    )
    return boxes, tf.cast(classes, tf.int32), scores, count


def layer_norm(inputs: Any, gamma: Any, beta: Any, *, epsilon: float) -> Any:
    """See `hortus.engine.kernels.layer_norm`."""

    # Without XLA each operation is a pass over memory; differentiation would make many more.
    @tf.custom_gradient
    def normalize(x: Any, gamma: Any, beta: Any) -> Any:
        centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
        scale = tf.math.rsqrt(variance + epsilon)
        normal = centred * scale

        def gradient(upstream: Any) -> tuple[Any, Any, Any]:
            rows = tf.reshape(upstream, [-1, upstream.shape[-1]])
            products = upstream * normal
            to_gamma = tf.reduce_sum(tf.reshape(products, [-1, products.shape[-1]]), axis=0)
            to_beta = tf.reduce_sum(rows, axis=0)
            inner = upstream * gamma
            mean = tf.reduce_mean(inner, axis=-1, keepdims=True)
            slope = tf.reduce_mean(products * gamma, axis=-1, keepdims=True)
            return (inner - (mean + normal * slope)) * scale, to_gamma, to_beta

        return normal * gamma + beta, gradient

    inputs = tf.cast(inputs, tf.float32)
    return normalize(inputs, tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta))


def in_one_pass(function: Callable, inputs: Sequence[Any], constants: dict[str, Any]) -> Any:
    """See `hortus.engine.kernels.in_one_pass`; None where it cannot be."""
    tensors = tuple(tf.convert_to_tensor(x) for x in inputs)
    if not one_pass.is_possible(tensors) or not _runs_on_cpu(tensors[0]):
        return None
    return one_pass.apply(function, tensors, constants)


def half_sum_of_squares(inputs: Any) -> Any:
    """See `hortus.engine.kernels.half_sum_of_squares`."""
    return weight_decay.half_sum_of_squares(inputs)


def momentum_step(
    variable: Any,
    velocity: Any,
    gradient: Any,
    learning_rate: Any,
    *,
    momentum: float,
    nesterov: bool,
) -> bool:
    """See `hortus.engine.kernels.momentum_step`."""
    if not isinstance(variable, tf.Variable) or isinstance(gradient, tf.IndexedSlices):
        return False
    tf.raw_ops.ResourceApplyKerasMomentum(
        var=variable.handle,
        accum=velocity.value.handle,
        lr=tf.cast(learning_rate, variable.dtype),
        grad=tf.cast(gradient, variable.dtype),
        momentum=tf.cast(momentum, variable.dtype),
        use_nesterov=nesterov,
    )
    return True


def add_number(variable: Any, amount: Any) -> bool:
    """See `hortus.engine.kernels.add_number`; False for a variable of several replicas."""
    if type(variable).__name__ != "ResourceVariable":
        return False
    variable.assign_add(amount, read_value=False)
    return True


def separate_replicas() -> int:
    """See `hortus.engine.kernels.separate_replicas`."""
    context = tf.distribute.get_replica_context()
    return context.num_replicas_in_sync if context is not None else 1


def sum_over_replicas(value: Any) -> Any:
    """See `hortus.engine.kernels.sum_over_replicas`."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return value
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value)


def _runs_on_cpu(weights: tf.Tensor) -> bool:
    """Whether float32 is computed with by TensorFlow's kernels for CPUs.

    On GPUs, cuDNN chooses its algorithms by itself.
    """
    if weights.dtype != tf.float32 or _is_compiled_by_xla():
        return False
    return not tf.config.list_logical_devices("GPU")


def _is_compiled_by_xla() -> bool:
    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())
