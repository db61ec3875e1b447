"""The Tucker block of MobileDet."""

from typing import Any

import keras

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.convolution.conv_norm import conv_norm
from hortus.vision.modeling.layers.round_filters import make_divisible


@keras.saving.register_keras_serializable(package="Hortus")
class TuckerConvBlock(Block):
    """Narrows, filters, widens without activation (Xiong et al. 2020).

    A convolution whose kernel is a Tucker decomposition: 1x1, full, 1x1.

    Args:
        in_filters: of the input.
        out_filters: of the output.
        input_compression_ratio: filters after the first convolution, as a share of the input's.
        output_compression_ratio: filters after the second one, as a share of the output's.
        kernel_size: of the second convolution.
        strides: of the second convolution.
        divisible_by: both numbers are multiples of this.
        use_residual: add the input, where the shape stays the same.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        in_filters: int,
        out_filters: int,
        input_compression_ratio: float,
        output_compression_ratio: float,
        kernel_size: int = 3,
        strides: int = 1,
        divisible_by: int = 8,
        use_residual: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.in_filters = in_filters
        self.out_filters = out_filters
        self.input_compression_ratio = input_compression_ratio
        self.output_compression_ratio = output_compression_ratio
        self.kernel_size = kernel_size
        self.strides = strides
        self.divisible_by = divisible_by
        self.use_residual = use_residual
        narrow = make_divisible(
            in_filters * input_compression_ratio, divisible_by, round_down_protect=False
        )
        middle = make_divisible(
            out_filters * output_compression_ratio, divisible_by, round_down_protect=False
        )
        self.compress = self._conv(narrow, 1, name="compress")
        self.compress_norm = self._norm("compress_norm")
        self.filter = self._conv(middle, kernel_size, strides=strides, name="filter")
        self.filter_norm = self._norm("filter_norm")
        self.expand = self._conv(out_filters, 1, name="expand")
        self.expand_norm = self._norm("expand_norm")

    def build(self, input_shape: Shape) -> None:
        build_chain(
            input_shape,
            self.compress,
            self.compress_norm,
            self.filter,
            self.filter_norm,
            self.expand,
            self.expand_norm,
        )

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, in_filters) to (batch, height / strides, ..., out_filters)."""
        activate = self.norm_act.activate
        x = activate(conv_norm(self.compress, self.compress_norm, inputs, training))
        x = activate(self.filter_norm(self.filter(x), training=training))
        x = conv_norm(self.expand, self.expand_norm, x, training)
        if self.use_residual and self.strides == 1 and self.in_filters == self.out_filters:
            x = x + inputs
        return x

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return build_chain(input_shape, self.compress, self.filter, self.expand)
