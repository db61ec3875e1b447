"""A convolution and the normalisation after it, in one where that is faster."""

from typing import Any

import keras

from hortus.engine import kernels
from hortus.vision.modeling.layers.convolution.conv2d import Conv2D
from hortus.vision.modeling.layers.normalization.batch_normalization import BatchNormalization


def conv_norm(
    conv: keras.layers.Layer, norm: keras.layers.Layer, inputs: Any, training: bool | None
) -> Any:
    """`norm(conv(inputs), training=training)`, in one where that is faster.

    One computation stands for both only where neither layer does anything beside it: a subclass
    with a `call` of its own is called, and so is a layer with an activity regularizer.
    """
    if training and _are_plain(conv, norm) and _dtype(inputs) == "float32":
        fused = kernels.normalized_convolution_1x1.fast(
            inputs, conv.kernel, conv.strides, *norm.scale_and_offset(), epsilon=norm.epsilon
        )
        if fused is not None:
            outputs, mean, variance = fused
            norm.follow_batch(mean, variance)
            return outputs
    return norm(conv(inputs), training=training)


def _are_plain(conv: keras.layers.Layer, norm: keras.layers.Layer) -> bool:
    """Whether the two do nothing but a 1x1 convolution and the normalisation of the batch."""
    return (
        type(conv) is Conv2D
        and conv.is_plain
        and conv.kernel_size == (1, 1)
        and not conv.use_bias
        and conv.activation is keras.activations.linear
        and type(norm) is BatchNormalization
        and norm.built
        and norm.trainable
        and norm.activity_regularizer is None
        and not norm.crosses_replicas()
        and conv.compute_dtype == norm.compute_dtype == "float32"
    )


def _dtype(inputs: Any) -> str:
    return keras.backend.standardize_dtype(inputs.dtype)
