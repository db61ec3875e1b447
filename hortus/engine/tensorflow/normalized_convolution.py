"""1x1 convolutions with the batch normalisation after them, as one convolution.

Batch normalisation looks at its inputs several times, forward and backward, and so takes as long as
they take from memory. What it needs to know of the outputs of a 1x1 convolution follows from its
inputs, which are often a quarter or a sixth as many: with centred inputs X and the kernel W, the
variances of X W are the diagonal of W' C W, where C is the covariance of the channels of X. Then
the scale of the normalisation goes into the kernel, and its offset is a bias.

The gradient is that of the same formula. The outputs of the convolution, before they are
normalised, are never there, so that they take no memory until the gradient either.
"""

import math
from typing import Any

import tensorflow as tf

from hortus.engine import kernels
from hortus.engine.tensorflow import cost_model
from hortus.engine.tensorflow.convolutions import sum_of_products, with_strides
from hortus.engine.tensorflow.placement import runs_on_cpu


@kernels.normalized_convolution_1x1.on("tensorflow")
def _normalized_convolution_1x1(
    inputs: Any, kernel: Any, strides: tuple[int, int], gamma: Any, beta: Any, *, epsilon: float
) -> tuple[Any, Any, Any] | None:
    inputs, kernel = tf.convert_to_tensor(inputs), tf.convert_to_tensor(kernel)
    if not is_faster(inputs, kernel, strides) or not runs_on_cpu(kernel):
        return None
    gamma, beta = tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta)
    return convolution(inputs, kernel, strides, gamma, beta, epsilon=epsilon)


def convolution(
    inputs: tf.Tensor,
    kernel: tf.Tensor,
    strides: tuple[int, int],
    gamma: tf.Tensor,
    beta: tf.Tensor,
    *,
    epsilon: float,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """See `hortus.engine.kernels.normalized_convolution_1x1`; float32, all sizes known.

    The mean and the variance have no gradient.
    """
    inputs = with_strides(inputs, strides)
    count = math.prod(inputs.shape[:3])

    @tf.custom_gradient
    def convolve(
        inputs: tf.Tensor, kernel: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor
    ) -> tuple[Any, Any]:
        weights = tf.reshape(kernel, kernel.shape[2:])
        rows = tf.reshape(inputs, [count, -1])
        input_mean = _sum_of_rows(rows) / count
        centred = rows - input_mean
        # (channels, filters): covariances between the inputs and the outputs.
        covariances = tf.matmul(tf.matmul(centred, centred, transpose_a=True) / count, weights)
        variance = tf.reduce_sum(weights * covariances, axis=0)
        deviation = tf.math.rsqrt(variance + epsilon)
        scale = gamma * deviation
        scaled = weights * scale
        # TensorFlow makes one kernel of a convolution, a bias and the activation that may follow.
        outputs = tf.nn.bias_add(
            tf.nn.conv2d(
                tf.reshape(centred, inputs.shape),
                tf.reshape(scaled, kernel.shape),
                strides=1,
                padding="SAME",
            ),
            beta,
        )

        def gradient(upstream: tf.Tensor, *_: Any) -> tuple[tf.Tensor, ...]:
            slopes = tf.reshape(upstream, [count, kernel.shape[3]])
            to_beta = _sum_of_rows(slopes)
            to_scaled = sum_of_products(centred, slopes)
            to_scale = tf.reduce_sum(to_scaled * weights, axis=0)
            to_variance = -to_scale * scale * deviation * deviation  # twice that, as is needed
            to_weights = to_scaled * scale + covariances * to_variance
            to_covariance = tf.matmul(weights * (to_variance / count), weights, transpose_b=True)
            to_mean = tf.linalg.matvec(scaled, to_beta / count)
            to_rows = tf.matmul(slopes, scaled, transpose_b=True)
            to_rows = tf.nn.bias_add(to_rows, -to_mean) + tf.matmul(centred, to_covariance)
            return (
                tf.reshape(to_rows, inputs.shape),
                tf.reshape(to_weights, kernel.shape),
                to_scale * deviation,
                to_beta,
            )

        mean = tf.linalg.matvec(weights, input_mean, transpose_a=True)
        return (outputs, mean, variance), gradient

    return convolve(inputs, kernel, gamma, beta)


def is_faster(inputs: tf.Tensor, kernel: tf.Tensor, strides: tuple[int, int]) -> bool:
    """Whether `convolution` is, than a convolution and a normalisation one after the other."""
    if None in inputs.shape:
        return False
    batch, height, width, _ = inputs.shape
    count = batch * -(-height // strides[0]) * -(-width // strides[1])
    return cost_model.is_normalized_faster(count, *kernel.shape[2:])


def _sum_of_rows(rows: tf.Tensor) -> tf.Tensor:
    # Twice as fast as `reduce_sum`.
    return tf.raw_ops.BiasAddGrad(out_backprop=rows)
