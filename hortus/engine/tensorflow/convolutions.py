"""Convolutions by way of matrix products.

A 1x1 convolution is one, and so are its gradients; TensorFlow's kernels for convolutions take a
tenth to a third longer. So is the gradient of a 3x3 convolution by the kernel, for which they take
up to twice as long.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hortus.engine import kernels
from hortus.engine.tensorflow import cost_model, winograd
from hortus.engine.tensorflow.placement import runs_on_cpu


@kernels.convolution_1x1.on("tensorflow")
def _convolution_1x1(inputs: Any, kernel: Any, strides: tuple[int, int]) -> Any:
    inputs, kernel = tf.convert_to_tensor(inputs), tf.convert_to_tensor(kernel)
    return convolution_1x1(inputs, kernel, strides) if runs_on_cpu(kernel) else None


@kernels.convolution_3x3.on("tensorflow")
def _convolution_3x3(
    inputs: Sequence[Any], kernel: Any, strides: tuple[int, int]
) -> list[Any] | None:
    inputs, kernel = [tf.convert_to_tensor(x) for x in inputs], tf.convert_to_tensor(kernel)
    if not runs_on_cpu(kernel):
        return None
    if strides == (1, 1) and winograd.is_faster(inputs, kernel):
        return winograd.convolution(inputs, kernel)
    if len(inputs) == 1 and is_3x3_faster(inputs[0], kernel, strides):
        return [convolution_3x3(inputs[0], kernel, strides)]
    return None


def convolution_1x1(inputs: tf.Tensor, kernel: tf.Tensor, strides: tuple[int, int]) -> tf.Tensor:
    """See `hortus.engine.kernels.convolution_1x1`; float32."""
    inputs = with_strides(inputs, strides)
    channels, filters = kernel.shape[2:]

    @tf.custom_gradient
    def multiply(rows: tf.Tensor, weights: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            slopes = tf.ensure_shape(upstream, [None, filters])
            return tf.matmul(slopes, weights, transpose_b=True), sum_of_products(rows, slopes)

        return tf.matmul(rows, weights), gradient

    rows = multiply(tf.reshape(inputs, [-1, channels]), tf.reshape(kernel, [channels, filters]))
    outputs = tf.reshape(rows, tf.concat([tf.shape(inputs)[:3], [filters]], axis=0))
    outputs.set_shape([*inputs.shape[:3], filters])
    return outputs


def sum_of_products(inputs: tf.Tensor, slopes: tf.Tensor) -> tf.Tensor:
    """The gradient by the matrix that `inputs` were multiplied with.

    Args:
        inputs: (rows, channels).
        slopes: (rows, filters), the gradient by the product.

    Returns:
        (channels, filters).
    """
    channels, filters = inputs.shape[1], slopes.shape[1]
    inputs, slopes = _padded(inputs, filters), _padded(slopes, channels)
    return tf.matmul(inputs, slopes, transpose_a=True)[:channels, :filters]


def _padded(rows: tf.Tensor, other_width: int) -> tf.Tensor:
    # Where oneDNN suffers from rows that compete for the cache, copying included.
    padding = cost_model.padding(rows.shape, other_width)
    return tf.pad(rows, [[0, 0], [0, padding]]) if padding else rows


def with_strides(inputs: tf.Tensor, strides: tuple[int, int]) -> tf.Tensor:
    """The inputs that a 1x1 convolution with strides looks at."""
    if strides == (1, 1):
        return inputs
    # Windows of one element are a slice, for which, and for its gradient, there are quicker
    # kernels than for slices.
    return tf.nn.avg_pool2d(inputs, ksize=1, strides=strides, padding="VALID")


def is_3x3_faster(inputs: tf.Tensor, kernel: tf.Tensor, strides: tuple[int, int]) -> bool:
    """Whether `convolution_3x3` is, than TensorFlow's way."""
    if None in inputs.shape:
        return False
    batch, height, width, channels = inputs.shape
    outputs = batch * -(-height // strides[0]) * -(-width // strides[1])
    return cost_model.is_3x3_product_faster(outputs, channels, kernel.shape[3], inputs.dtype.size)


def convolution_3x3(inputs: tf.Tensor, kernel: tf.Tensor, strides: tuple[int, int]) -> tf.Tensor:
    """A 3x3 convolution with as much padding as it needs.

    Args:
        inputs: (batch, height, width, channels) float32, all sizes known.
        kernel: (3, 3, channels, filters) float32.
        strides: along height and width.

    Returns:
        (batch, height, width, filters), sizes divided by the strides and rounded up.
    """
    channels = kernel.shape[2]

    @tf.custom_gradient
    def convolve(inputs: tf.Tensor, kernel: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            to_inputs = tf.raw_ops.Conv2DBackpropInput(
                input_sizes=tf.shape(inputs),
                filter=kernel,
                out_backprop=upstream,
                strides=[1, *strides, 1],
                padding="SAME",
            )
            with tf.control_dependencies([to_inputs]):  # the next gradient waits for it
                rows = tf.concat([tf.reshape(inputs, [-1, channels]), tf.zeros([1, channels])], 0)
            windows = tf.gather(rows, _windows(tuple(inputs.shape[:3]), strides))
            windows = tf.reshape(windows, [-1, 9 * channels])
            slopes = tf.reshape(upstream, [-1, kernel.shape[3]])
            to_kernel = sum_of_products(windows, slopes)
            return to_inputs, tf.reshape(to_kernel, kernel.shape)

        return tf.nn.conv2d(inputs, kernel, strides=strides, padding="SAME"), gradient

    return convolve(inputs, kernel)


@functools.lru_cache(maxsize=64)
def _windows(shape: tuple[int, int, int], strides: tuple[int, int]) -> np.ndarray:
    """(outputs, 9): places of an output's inputs among all; the number of all for those outside."""
    batch, height, width = shape
    y, x = (_positions(side, stride) for side, stride in zip((height, width), strides, strict=True))
    places = y[:, None, :, None] * width + x[None, :, None, :]
    places = places + (np.arange(batch) * height * width)[:, None, None, None, None]
    is_inside = ((y >= 0) & (y < height))[:, None, :, None] & ((x >= 0) & (x < width))[:, None, :]
    return np.where(is_inside, places, batch * height * width).reshape(-1, 9).astype("int32")


def _positions(side: int, stride: int) -> np.ndarray:
    """(outputs, 3) along a side; TensorFlow pads the end by one more than the beginning."""
    outputs = -(-side // stride)
    before = max((outputs - 1) * stride + 3 - side, 0) // 2
    return stride * np.arange(outputs)[:, None] + np.arange(3) - before
