"""Faster ways of TensorFlow for `hortus.engine.kernels`, and of the modules beside this one."""

from typing import Any

import keras
import tensorflow as tf

from hortus.engine import keras_private, kernels
from hortus.engine.tensorflow import (  # noqa: F401  they register their own
    convolutions,
    normalized_convolution,
    one_pass,
    weight_decay,
)
from hortus.engine.tensorflow.placement import is_compiled_by_xla

_FUSABLE = ("float32", "bfloat16", "float16")
# Below this, TensorFlow silently raises epsilon, as cuDNN asks for it.
_LEAST_EPSILON = 1.001e-5


@kernels.batch_norm.on("tensorflow")
def batch_norm(
    inputs: Any,
    gamma: Any,
    beta: Any,
    *,
    epsilon: float,
    mean: Any = None,
    variance: Any = None,
) -> tuple[Any, Any, Any] | None:
    """By the fused kernel, for the types and epsilons that it takes as they are."""
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


@kernels.non_max_suppression.on("tensorflow")
def non_max_suppression(
    boxes: Any,
    scores: Any,
    *,
    iou_threshold: float,
    score_threshold: float,
    max_detections: int,
) -> tuple[Any, Any, Any, Any] | None:
    """By the combined kernel, which XLA cannot compile."""
    if is_compiled_by_xla():
        return None
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


@kernels.layer_norm.on("tensorflow")
def layer_norm(inputs: Any, gamma: Any, beta: Any, *, epsilon: float) -> Any:
    """With its gradient in closed form."""

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


@kernels.momentum_step.on("tensorflow")
def momentum_step(
    variable: Any,
    velocity: Any,
    gradient: Any,
    learning_rate: Any,
    *,
    momentum: float,
    nesterov: bool,
) -> bool | None:
    """By the kernel for dense gradients."""
    if not isinstance(variable, tf.Variable) or isinstance(gradient, tf.IndexedSlices):
        return None
    tf.raw_ops.ResourceApplyKerasMomentum(
        var=variable.handle,
        accum=velocity.value.handle,
        lr=tf.cast(learning_rate, variable.dtype),
        grad=tf.cast(gradient, variable.dtype),
        momentum=tf.cast(momentum, variable.dtype),
        use_nesterov=nesterov,
    )
    return True


@kernels.add_number.on("tensorflow")
def add_number(variable: Any, amount: Any) -> bool | None:
    """In one operation where Keras takes three; not for a variable of several replicas."""
    if keras_private.stateless_scope() is not None:
        return None
    if type(variable.value).__name__ != "ResourceVariable":
        return None
    variable.value.assign_add(keras.ops.cast(amount, variable.dtype), read_value=False)
    return True
