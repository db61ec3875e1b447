"""The block of MobileNet V1."""

from typing import Any

import keras

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.convolution.conv_norm import conv_norm


@keras.saving.register_keras_serializable(package="Hortus")
class DepthwiseSeparableConvBlock(Block):
    """A depthwise 3x3 and a 1x1 convolution, each normalised and activated (Howard et al. 2017).

    Args:
        filters: of the output.
        strides: of the depthwise convolution.
        dilation_rate: of the depthwise convolution.
        regularize_depthwise: regularise the depthwise kernel too.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        filters: int,
        strides: int = 1,
        dilation_rate: int = 1,
        regularize_depthwise: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.filters = filters
        self.strides = strides
        self.dilation_rate = dilation_rate
        self.regularize_depthwise = regularize_depthwise
        self.depthwise = self._depthwise_conv(
            3,
            strides=strides,
            dilation_rate=dilation_rate,
            regularizer=self.kernel_regularizer if regularize_depthwise else None,
            name="depthwise",
        )
        self.depthwise_norm = self._norm("depthwise_norm")
        self.pointwise = self._conv(filters, 1, name="pointwise")
        self.pointwise_norm = self._norm("pointwise_norm")

    def build(self, input_shape: Shape) -> None:
        build_chain(
            input_shape, self.depthwise, self.depthwise_norm, self.pointwise, self.pointwise_norm
        )

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, channels) to (batch, height / strides, ..., filters)."""
        activate = self.norm_act.activate
        x = activate(self.depthwise_norm(self.depthwise(inputs), training=training))
        return activate(conv_norm(self.pointwise, self.pointwise_norm, x, training))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return build_chain(input_shape, self.depthwise, self.pointwise)
