"""The residual blocks of ResNet."""

from typing import Any

import keras

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.blocks.squeeze_excitation import SqueezeExcitation
from hortus.vision.modeling.layers.convolution.conv_norm import conv_norm
from hortus.vision.modeling.layers.regularization.stochastic_depth import StochasticDepth


class _Residual(Block):
    """Shortcut, squeeze-excite and stochastic depth around the convolutions of a subclass."""

    expansion = 1
    """Output filters per `filters`."""
    resnetd_shortcut = False

    def __init__(
        self,
        filters: int,
        strides: int = 1,
        dilation_rate: int = 1,
        use_projection: bool = False,
        se_ratio: float = 0.0,
        stochastic_depth_drop_rate: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.filters = filters
        self.strides = strides
        self.dilation_rate = dilation_rate
        self.use_projection = use_projection
        self.se_ratio = se_ratio
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        out_filters = filters * self.expansion

        self.shortcut_pool = self.shortcut_conv = self.shortcut_norm = None
        if use_projection:
            if self.resnetd_shortcut:
                self.shortcut_pool = keras.layers.AveragePooling2D(
                    2, strides, padding="same", dtype=self.dtype_policy, name="shortcut_pool"
                )
                strides = 1
            self.shortcut_conv = self._conv(out_filters, 1, strides=strides, name="shortcut_conv")
            self.shortcut_norm = self._norm("shortcut_norm")
        self._make_convolutions()
        self.squeeze_excitation = None
        if se_ratio > 0:
            self.squeeze_excitation = SqueezeExcitation(
                out_filters,
                se_ratio,
                activation="relu",
                norm_act=self.norm_act,
                kernel_initializer=self.kernel_initializer,
                kernel_regularizer=self.kernel_regularizer,
                bias_regularizer=self.bias_regularizer,
                dtype=self.dtype_policy,
                name="squeeze_excitation",
            )
        self.stochastic_depth = None
        if stochastic_depth_drop_rate:
            self.stochastic_depth = StochasticDepth(
                stochastic_depth_drop_rate, dtype=self.dtype_policy, name="stochastic_depth"
            )

    def _make_convolutions(self) -> None:
        raise NotImplementedError

    def _convolutions(self) -> list[keras.layers.Layer]:
        """Convolutions and normalisations in turn."""
        raise NotImplementedError

    def build(self, input_shape: Shape) -> None:
        build_chain(input_shape, self.shortcut_pool, self.shortcut_conv, self.shortcut_norm)
        build_chain(input_shape, *self._convolutions(), self.squeeze_excitation)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, channels) to (batch, height / strides, ..., output filters)."""
        shortcut = inputs
        if self.shortcut_conv is not None:
            if self.shortcut_pool is not None:
                shortcut = self.shortcut_pool(shortcut)
            shortcut = conv_norm(self.shortcut_conv, self.shortcut_norm, shortcut, training)
        x = inputs
        *pairs, last_conv, last_norm = self._convolutions()
        for conv, norm in zip(pairs[::2], pairs[1::2], strict=True):
            x = self.norm_act.activate(conv_norm(conv, norm, x, training))
        x = conv_norm(last_conv, last_norm, x, training)
        if self.squeeze_excitation is not None:
            x = self.squeeze_excitation(x)
        if self.stochastic_depth is not None:
            x = self.stochastic_depth(x, training=training)
        return self.norm_act.activate(x + shortcut)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return build_chain(input_shape, *self._convolutions())


@keras.saving.register_keras_serializable(package="Hortus")
class ResidualBlock(_Residual):
    """Two 3x3 convolutions and a shortcut (He et al. 2015).

    Args:
        filters: width of the block, and of its output.
        strides: of the first convolution.
        dilation_rate: of the first convolution.
        use_projection: a 1x1 convolution as shortcut; needed when the shape changes.
        se_ratio: squeeze-excite width as a share of the output's, 0 to 1; 0 leaves it out.
        stochastic_depth_drop_rate: chance that an example skips the block in training.
        **kwargs: of `Block`.
    """

    def _make_convolutions(self) -> None:
        self.conv1 = self._conv(
            self.filters,
            3,
            strides=self.strides,
            dilation_rate=self.dilation_rate,
            name="conv1",
        )
        self.norm1 = self._norm("norm1")
        self.conv2 = self._conv(self.filters, 3, name="conv2")
        self.norm2 = self._norm("norm2")

    def _convolutions(self) -> list[keras.layers.Layer]:
        return [self.conv1, self.norm1, self.conv2, self.norm2]


@keras.saving.register_keras_serializable(package="Hortus")
class BottleneckBlock(_Residual):
    """1x1, 3x3 and 1x1 convolution and a shortcut (He et al. 2015); strides in the 3x3 one.

    Args:
        filters: width inside the block; the output has four times as many.
        strides: of the 3x3 convolution.
        dilation_rate: of the 3x3 convolution.
        use_projection: a 1x1 convolution as shortcut; needed when the shape changes.
        resnetd_shortcut: average-pool over 2x2 before it, and stride there (ResNet-D).
        se_ratio: squeeze-excite width as a share of the output's, 0 to 1; 0 leaves it out.
        stochastic_depth_drop_rate: chance that an example skips the block in training.
        **kwargs: of `Block`.
    """

    expansion = 4

    def __init__(self, filters: int, *, resnetd_shortcut: bool = False, **kwargs: Any):
        # Known before the layers are made.
        self.resnetd_shortcut = resnetd_shortcut
        super().__init__(filters, **kwargs)

    def _make_convolutions(self) -> None:
        self.conv1 = self._conv(self.filters, 1, name="conv1")
        self.norm1 = self._norm("norm1")
        self.conv2 = self._conv(
            self.filters,
            3,
            strides=self.strides,
            dilation_rate=self.dilation_rate,
            name="conv2",
        )
        self.norm2 = self._norm("norm2")
        self.conv3 = self._conv(self.filters * self.expansion, 1, name="conv3")
        self.norm3 = self._norm("norm3")

    def _convolutions(self) -> list[keras.layers.Layer]:
        return [self.conv1, self.norm1, self.conv2, self.norm2, self.conv3, self.norm3]
