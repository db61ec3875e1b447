"""The block of MobileNet V4."""

from typing import Any

import keras

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.convolution.conv_norm import conv_norm
from hortus.vision.modeling.layers.normalization.layer_scale import LayerScale
from hortus.vision.modeling.layers.regularization.stochastic_depth import StochasticDepth
from hortus.vision.modeling.layers.round_filters import make_divisible


@keras.saving.register_keras_serializable(package="Hortus")
class UniversalInvertedBottleneckBlock(Block):
    """Inverted bottleneck with optional depthwise convolutions at two places (Qin et al. 2024).

    With the middle one it is that of MobileNet V2, with the first one that of ConvNeXt, with both
    "extra depthwise", with none a feed-forward network.

    Args:
        in_filters: of the input.
        out_filters: of the output.
        expand_ratio: factor by which the block widens its input, 1 or more.
        start_kernel_size: of the depthwise convolution before widening; 0 leaves it out.
        middle_kernel_size: of the depthwise convolution after widening; 0 leaves it out.
        strides: of the middle depthwise convolution, or of the first one if there is no other.
        dilation_rate: of the depthwise convolutions.
        divisible_by: the widened number is a multiple of this.
        layer_scale_init_value: start value of LayerScale; None leaves it out.
        stochastic_depth_drop_rate: chance that an example skips the block in training.
        regularize_depthwise: regularise the depthwise kernels too.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        in_filters: int,
        out_filters: int,
        expand_ratio: float,
        start_kernel_size: int = 0,
        middle_kernel_size: int = 3,
        strides: int = 1,
        dilation_rate: int = 1,
        divisible_by: int = 8,
        layer_scale_init_value: float | None = None,
        stochastic_depth_drop_rate: float = 0.0,
        regularize_depthwise: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if strides > 1 and not (start_kernel_size or middle_kernel_size):
            raise ValueError(f"a block without depthwise convolution cannot stride by {strides}")
        self.in_filters = in_filters
        self.out_filters = out_filters
        self.expand_ratio = expand_ratio
        self.start_kernel_size = start_kernel_size
        self.middle_kernel_size = middle_kernel_size
        self.strides = strides
        self.dilation_rate = dilation_rate
        self.divisible_by = divisible_by
        self.layer_scale_init_value = layer_scale_init_value
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        self.regularize_depthwise = regularize_depthwise

        regularizer = self.kernel_regularizer if regularize_depthwise else None
        self.start: keras.layers.Layer = None
        self.start_norm: keras.layers.Layer = None
        self.middle: keras.layers.Layer = None
        self.middle_norm: keras.layers.Layer = None
        if start_kernel_size:
            self.start = self._depthwise_conv(
                start_kernel_size,
                strides=1 if middle_kernel_size else strides,
                dilation_rate=dilation_rate,
                regularizer=regularizer,
                name="start",
            )
            self.start_norm = self._norm("start_norm")
        expanded = make_divisible(in_filters * expand_ratio, divisible_by)
        self.expand = self._conv(expanded, 1, name="expand")
        self.expand_norm = self._norm("expand_norm")
        if middle_kernel_size:
            self.middle = self._depthwise_conv(
                middle_kernel_size,
                strides=strides,
                dilation_rate=dilation_rate,
                regularizer=regularizer,
                name="middle",
            )
            self.middle_norm = self._norm("middle_norm")
        self.project = self._conv(out_filters, 1, name="project")
        self.project_norm = self._norm("project_norm")
        self.layer_scale = None
        if layer_scale_init_value is not None:
            self.layer_scale = LayerScale(
                layer_scale_init_value, dtype=self.dtype_policy, name="layer_scale"
            )
        self.stochastic_depth = None
        if stochastic_depth_drop_rate and self._adds_input():
            self.stochastic_depth = StochasticDepth(
                stochastic_depth_drop_rate, dtype=self.dtype_policy, name="stochastic_depth"
            )

    def _adds_input(self) -> bool:
        return self.strides == 1 and self.in_filters == self.out_filters

    def build(self, input_shape: Shape) -> None:
        build_chain(
            input_shape,
            self.start,
            self.start_norm,
            self.expand,
            self.expand_norm,
            self.middle,
            self.middle_norm,
            self.project,
            self.project_norm,
            self.layer_scale,
        )

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, in_filters) to (batch, height / strides, ..., out_filters)."""
        activate = self.norm_act.activate
        x = inputs
        if self.start is not None:
            x = self.start_norm(self.start(x), training=training)
        x = activate(conv_norm(self.expand, self.expand_norm, x, training))
        if self.middle is not None:
            x = activate(self.middle_norm(self.middle(x), training=training))
        x = conv_norm(self.project, self.project_norm, x, training)
        if self.layer_scale is not None:
            x = self.layer_scale(x)
        if self.stochastic_depth is not None:
            x = self.stochastic_depth(x, training=training)
        return x + inputs if self._adds_input() else x

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return build_chain(input_shape, self.start, self.expand, self.middle, self.project)
