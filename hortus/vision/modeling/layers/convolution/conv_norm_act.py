"""A convolution with its normalisation and activation."""

from typing import Any

import keras

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.convolution.conv_norm import conv_norm


@keras.saving.register_keras_serializable(package="Hortus")
class ConvNormAct(Block):
    """Convolution, normalisation, activation.

    Args:
        filters: of the output.
        kernel_size: side of the kernel.
        strides: of the convolution.
        use_bias: give the convolution a bias.
        use_normalization: normalise after the convolution.
        **kwargs: of `Block`; the activation is that of `norm_act`.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: int = 3,
        strides: int = 1,
        use_bias: bool = False,
        use_normalization: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.filters = filters
        self.kernel_size = kernel_size
        self.strides = strides
        self.use_bias = use_bias
        self.use_normalization = use_normalization
        self.conv = self._conv(
            filters, kernel_size, strides=strides, use_bias=use_bias, name="conv"
        )
        self.norm = self._norm("norm") if use_normalization else None

    def build(self, input_shape: Shape) -> None:
        build_chain(input_shape, self.conv, self.norm)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, channels) to (batch, height / strides, ..., filters)."""
        if self.norm is None:
            return self.norm_act.activate(self.conv(inputs))
        return self.norm_act.activate(conv_norm(self.conv, self.norm, inputs, training))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self.conv.compute_output_shape(input_shape)
