"""The block of MobileNet V2 and V3 and of EfficientNet."""

from typing import Any

import keras

from hortus.vision.modeling.layers import activations
from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.blocks.squeeze_excitation import SqueezeExcitation
from hortus.vision.modeling.layers.convolution.conv_norm import conv_norm
from hortus.vision.modeling.layers.regularization.stochastic_depth import StochasticDepth
from hortus.vision.modeling.layers.round_filters import make_divisible


@keras.saving.register_keras_serializable(package="Hortus")
class InvertedBottleneckBlock(Block):
    """Widens, filters depthwise, narrows without activation (Sandler et al. 2018).

    Args:
        in_filters: of the input.
        out_filters: of the output.
        expand_ratio: factor by which the block widens its input, 1 or more.
        strides: of the depthwise convolution.
        kernel_size: of the depthwise convolution.
        dilation_rate: of the depthwise convolution.
        se_ratio: squeeze-excite width, 0 to 1, as a share of the widened or, without
            `expand_se_in_filters`, of the input's; 0 or None leaves it out.
        se_inner_activation: of the squeeze-excite bottleneck.
        se_gating_activation: from the excitation to the factor of a channel.
        se_round_down_protect: rounding never takes more than a tenth of the squeeze-excite width.
        expand_se_in_filters: what `se_ratio` is a share of.
        divisible_by: the widened number and that of squeeze-excite are multiples of this.
        use_depthwise: False filters and widens in one full convolution instead ("fused").
        use_residual: add the input, where the shape stays the same.
        stochastic_depth_drop_rate: chance that an example skips the block in training.
        regularize_depthwise: regularise the depthwise kernel too.
        depthwise_activation: after the depthwise convolution; None takes that of `norm_act`.
        output_intermediate_endpoints: also return {'depthwise': what the depthwise part gave}.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        in_filters: int,
        out_filters: int,
        expand_ratio: float,
        strides: int = 1,
        kernel_size: int = 3,
        dilation_rate: int = 1,
        se_ratio: float | None = None,
        se_inner_activation: Any = "relu",
        se_gating_activation: Any = "sigmoid",
        se_round_down_protect: bool = True,
        expand_se_in_filters: bool = False,
        divisible_by: int = 1,
        use_depthwise: bool = True,
        use_residual: bool = True,
        stochastic_depth_drop_rate: float = 0.0,
        regularize_depthwise: bool = False,
        depthwise_activation: Any = None,
        output_intermediate_endpoints: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.in_filters = in_filters
        self.out_filters = out_filters
        self.expand_ratio = expand_ratio
        self.strides = strides
        self.kernel_size = kernel_size
        self.dilation_rate = dilation_rate
        self.se_ratio = se_ratio
        self.se_inner_activation = se_inner_activation
        self.se_gating_activation = se_gating_activation
        self.se_round_down_protect = se_round_down_protect
        self.expand_se_in_filters = expand_se_in_filters
        self.divisible_by = divisible_by
        self.use_depthwise = use_depthwise
        self.use_residual = use_residual
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        self.regularize_depthwise = regularize_depthwise
        self.depthwise_activation = depthwise_activation
        self.output_intermediate_endpoints = output_intermediate_endpoints
        self._make_layers(make_divisible(in_filters * expand_ratio, divisible_by))

    def _make_layers(self, expanded: int) -> None:
        self.expand: keras.layers.Layer = None
        self.expand_norm: keras.layers.Layer = None
        self.depthwise: keras.layers.Layer = None
        self.depthwise_norm: keras.layers.Layer = None
        if self.expand_ratio > 1:
            fused: dict[str, Any] = {} if self.use_depthwise else {"strides": self.strides}
            size = 1 if self.use_depthwise else self.kernel_size
            self.expand = self._conv(expanded, size, name="expand", **fused)
            self.expand_norm = self._norm("expand_norm")
        if self.use_depthwise:
            self.depthwise = self._depthwise_conv(
                self.kernel_size,
                strides=self.strides,
                dilation_rate=self.dilation_rate,
                regularizer=self.kernel_regularizer if self.regularize_depthwise else None,
                name="depthwise",
            )
            self.depthwise_norm = self._norm("depthwise_norm")
        self._activate_depthwise = self.norm_act.activate
        if self.depthwise_activation:
            self._activate_depthwise = activations.get(self.depthwise_activation)
        self.squeeze_excitation = None
        if self.se_ratio:
            self.squeeze_excitation = SqueezeExcitation(
                expanded if self.expand_se_in_filters else self.in_filters,
                self.se_ratio,
                divisible_by=self.divisible_by,
                round_down_protect=self.se_round_down_protect,
                gating_activation=self.se_gating_activation,
                activation=self.se_inner_activation,
                norm_act=self.norm_act,
                kernel_initializer=self.kernel_initializer,
                kernel_regularizer=self.kernel_regularizer,
                bias_regularizer=self.bias_regularizer,
                dtype=self.dtype_policy,
                name="squeeze_excitation",
            )
        self.project = self._conv(self.out_filters, 1, name="project")
        self.project_norm = self._norm("project_norm")
        self.stochastic_depth = None
        if self.stochastic_depth_drop_rate and self._adds_input():
            self.stochastic_depth = StochasticDepth(
                self.stochastic_depth_drop_rate, dtype=self.dtype_policy, name="stochastic_depth"
            )

    def _adds_input(self) -> bool:
        return self.use_residual and self.strides == 1 and self.in_filters == self.out_filters

    def build(self, input_shape: Shape) -> None:
        build_chain(
            input_shape,
            self.expand,
            self.expand_norm,
            self.depthwise,
            self.depthwise_norm,
            self.squeeze_excitation,
            self.project,
            self.project_norm,
        )

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, in_filters) to (batch, height / strides, ..., out_filters)."""
        x = inputs
        if self.expand is not None:
            x = self.norm_act.activate(conv_norm(self.expand, self.expand_norm, x, training))
        if self.depthwise is not None:
            x = self._activate_depthwise(self.depthwise_norm(self.depthwise(x), training=training))
        endpoints = {"depthwise": x}
        if self.squeeze_excitation is not None:
            x = self.squeeze_excitation(x)
        x = conv_norm(self.project, self.project_norm, x, training)
        if self.stochastic_depth is not None:
            x = self.stochastic_depth(x, training=training)
        if self._adds_input():
            x = x + inputs
        return (x, endpoints) if self.output_intermediate_endpoints else x

    def compute_output_shape(self, input_shape: Shape) -> Any:
        wide = build_chain(input_shape, self.expand, self.depthwise)
        output = self.project.compute_output_shape(wide)
        return (output, {"depthwise": wide}) if self.output_intermediate_endpoints else output
