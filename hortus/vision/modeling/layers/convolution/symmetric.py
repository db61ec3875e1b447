"""Strided layers that pad both sides alike, as PyTorch's do.

With `same` padding a stride of 2 pads one side more than the other where the size is even. Weights
that were trained one way see everything shifted by half a pixel the other way.
"""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.convolution.conv2d import Conv2D

PADDINGS = ("same", "symmetric")
"""Values of `padding` of backbones and blocks."""

Shape = tuple[int | None, ...]


class _Symmetric:
    """Pads by half of the kernel on every side before a layer that does not pad."""

    kernel_size: Any
    fill = 0.0

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **{**kwargs, "padding": "valid"})

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, channels) to (batch, height / strides, ..., filters)."""
        del training  # the engines' faster ways pad by themselves
        pads = [(side // 2, side // 2) for side in self.kernel_size]
        padded = ops.pad(inputs, [(0, 0), *pads, (0, 0)], constant_values=self.fill)
        return super().call(padded)  # type: ignore[misc]

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        sides = zip(input_shape[1:3], self.kernel_size, strict=True)
        padded = [side and side + 2 * (kernel // 2) for side, kernel in sides]
        shape = (input_shape[0], *padded, input_shape[3])
        return super().compute_output_shape(shape)  # type: ignore[misc]


@keras.saving.register_keras_serializable(package="Hortus")
class SymmetricConv2D(_Symmetric, Conv2D):
    """A convolution that pads both sides alike. Arguments as in Keras, without `padding`."""


@keras.saving.register_keras_serializable(package="Hortus")
class SymmetricDepthwiseConv2D(_Symmetric, keras.layers.DepthwiseConv2D):
    """A depthwise convolution that pads both sides alike. Arguments as in Keras."""


@keras.saving.register_keras_serializable(package="Hortus")
class SymmetricMaxPooling2D(_Symmetric, keras.layers.MaxPooling2D):
    """Max pooling that pads both sides alike, with nothing that could be a maximum."""

    # The lowest that float16 has; infinities are not in every format that models are exported to.
    fill = -65504.0

    @property
    def kernel_size(self) -> tuple[int, int]:
        """Height and width of the window."""
        return self.pool_size


def check_padding(padding: str) -> str:
    """`padding`, if it is one of `PADDINGS`."""
    if padding not in PADDINGS:
        raise ValueError(f"padding must be one of {PADDINGS}, got {padding!r}")
    return padding
