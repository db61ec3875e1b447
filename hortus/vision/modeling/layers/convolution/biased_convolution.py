"""A convolution with a bias, plain or depthwise separable."""

from typing import Any

import keras

from hortus.vision.modeling.layers.blocks.block import fresh_initializer
from hortus.vision.modeling.layers.convolution.conv2d import Conv2D


def convolution(
    filters: int,
    kernel_size: int,
    *,
    name: str,
    separable: bool = False,
    kernel_initializer: Any = "glorot_uniform",
    kernel_regularizer: Any = None,
    **kwargs: Any,
) -> keras.layers.Layer:
    """Makes a convolution that keeps height and width.

    Args:
        filters: of the output.
        kernel_size: side of the kernel.
        name: of the layer.
        separable: a depthwise convolution followed by a 1x1 one, with fewer weights.
        kernel_initializer: of its one kernel or of both; each gets random numbers of its own.
        kernel_regularizer: of its one kernel or of both, or None.
        **kwargs: of `keras.layers.Conv2D`, such as `strides` or `bias_initializer`.
    """
    if not separable:
        return Conv2D(
            filters,
            kernel_size,
            padding="same",
            kernel_initializer=fresh_initializer(kernel_initializer),
            kernel_regularizer=kernel_regularizer,
            name=name,
            **kwargs,
        )
    return keras.layers.SeparableConv2D(
        filters,
        kernel_size,
        padding="same",
        depthwise_initializer=fresh_initializer(kernel_initializer),
        depthwise_regularizer=kernel_regularizer,
        pointwise_initializer=fresh_initializer(kernel_initializer),
        pointwise_regularizer=kernel_regularizer,
        name=name,
        **kwargs,
    )
