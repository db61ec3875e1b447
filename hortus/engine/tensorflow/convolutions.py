"""Convolutions whose gradients by the kernel are matrix products.

TensorFlow's kernels for these gradients take up to twice as long as a matrix product, where an
output depends on one input, or where there are strides.
"""

import functools
from typing import Any

import numpy as np
import tensorflow as tf

_LEAST_CHANNELS = 192
"""From which on 3x3 convolutions gain: each input is copied two or three times for the product."""


def convolution_1x1(inputs: tf.Tensor, kernel: tf.Tensor, strides: tuple[int, int]) -> tf.Tensor:
    """See `hortus.engine.kernels.convolution_1x1`."""
    if strides != (1, 1):
        # The kernel for strides would go through all inputs. Windows of one element are a slice,
        # for which, and for its gradient, there are quicker kernels than for slices.
        inputs = tf.nn.avg_pool2d(inputs, ksize=1, strides=strides, padding="VALID")

    @tf.custom_gradient
    def convolve(inputs: tf.Tensor, kernel: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            rows = tf.reshape(inputs, [-1, kernel.shape[2]])
            return _to_inputs(inputs, kernel, upstream, (1, 1)), _to_kernel(rows, kernel, upstream)

        return tf.nn.conv2d(inputs, kernel, strides=1, padding="SAME"), gradient

    return convolve(inputs, kernel)


def can_stride(inputs: tf.Tensor, kernel: tf.Tensor) -> bool:
    """Whether `strided_3x3` is faster than TensorFlow's way."""
    return None not in inputs.shape and min(kernel.shape[2:]) >= _LEAST_CHANNELS


def strided_3x3(inputs: tf.Tensor, kernel: tf.Tensor, strides: tuple[int, int]) -> tf.Tensor:
    """See `hortus.engine.kernels.strided_3x3`."""
    channels = kernel.shape[2]

    @tf.custom_gradient
    def convolve(inputs: tf.Tensor, kernel: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            to_inputs = _to_inputs(inputs, kernel, upstream, strides)
            with tf.control_dependencies([to_inputs]):  # the next gradient waits for it
                rows = tf.concat([tf.reshape(inputs, [-1, channels]), tf.zeros([1, channels])], 0)
            windows = tf.gather(rows, _windows(tuple(inputs.shape[:3]), strides))
            windows = tf.reshape(windows, [-1, 9 * channels])
            return to_inputs, _to_kernel(windows, kernel, upstream)

        return tf.nn.conv2d(inputs, kernel, strides=strides, padding="SAME"), gradient

    return convolve(inputs, kernel)


def _to_inputs(
    inputs: tf.Tensor, kernel: tf.Tensor, upstream: tf.Tensor, strides: tuple[int, int]
) -> tf.Tensor:
    return tf.raw_ops.Conv2DBackpropInput(
        input_sizes=tf.shape(inputs),
        filter=kernel,
        out_backprop=upstream,
        strides=[1, *strides, 1],
        padding="SAME",
    )


def _to_kernel(windows: tf.Tensor, kernel: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    upstream = tf.reshape(upstream, [-1, kernel.shape[3]])
    return tf.reshape(tf.matmul(windows, upstream, transpose_a=True), kernel.shape)


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
