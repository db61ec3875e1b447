"""The block of ConvNeXt."""

from typing import Any

import keras

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain, fresh_initializer
from hortus.vision.modeling.layers.blocks.squeeze_excitation import SqueezeExcitation
from hortus.vision.modeling.layers.normalization.layer_scale import LayerScale
from hortus.vision.modeling.layers.regularization.stochastic_depth import StochasticDepth

_EXPANSION = 4


@keras.saving.register_keras_serializable(package="Hortus")
class ConvNeXtBlock(Block):
    """Filters depthwise, widens, narrows, adds the input (Liu et al. 2022), with squeeze-excite.

    It normalises over channels and activates by GELU, whatever `norm_act` says.

    Args:
        filters: of the input and of the output.
        kernel_size: side of the depthwise kernel.
        se_ratio: squeeze-excite width as a share of the widened features, 0 to 1; 0 leaves it out.
        layer_scale_init_value: start value of the factors on the residual.
        stochastic_depth_drop_rate: chance that an example skips the block in training.
        kernel_initializer: of the depthwise convolution and of the dense layers.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: int = 7,
        se_ratio: float = 1 / 16,
        layer_scale_init_value: float = 1e-6,
        stochastic_depth_drop_rate: float = 0.0,
        kernel_initializer: Any = None,
        **kwargs: Any,
    ):
        initializer = kernel_initializer or keras.initializers.TruncatedNormal(stddev=0.02)
        super().__init__(kernel_initializer=initializer, **kwargs)
        self.filters = filters
        self.kernel_size = kernel_size
        self.se_ratio = se_ratio
        self.layer_scale_init_value = layer_scale_init_value
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        self.depthwise = keras.layers.DepthwiseConv2D(
            kernel_size,
            padding="same",
            depthwise_initializer=fresh_initializer(self.kernel_initializer),
            depthwise_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name="depthwise",
        )
        self.norm = keras.layers.LayerNormalization(
            epsilon=1e-6, dtype=self.dtype_policy, name="norm"
        )
        self.expand = self._dense(_EXPANSION * filters, name="expand")
        self.squeeze_excitation = None
        if se_ratio:
            self.squeeze_excitation = SqueezeExcitation(
                _EXPANSION * filters,
                se_ratio,
                activation="approximate_gelu",
                kernel_regularizer=self.kernel_regularizer,
                bias_regularizer=self.bias_regularizer,
                dtype=self.dtype_policy,
                name="squeeze_excitation",
            )
        self.project = self._dense(filters, name="project")
        self.layer_scale = LayerScale(
            layer_scale_init_value, rank=4, dtype=self.dtype_policy, name="layer_scale"
        )
        self.stochastic_depth = None
        if stochastic_depth_drop_rate:
            self.stochastic_depth = StochasticDepth(
                stochastic_depth_drop_rate, dtype=self.dtype_policy, name="stochastic_depth"
            )

    def _dense(self, units: int, name: str) -> keras.layers.Layer:
        return keras.layers.Dense(
            units,
            kernel_initializer=fresh_initializer(self.kernel_initializer),
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape: Shape) -> None:
        build_chain(
            input_shape,
            self.depthwise,
            self.norm,
            self.expand,
            self.squeeze_excitation,
            self.project,
            self.layer_scale,
        )

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Changes (batch, height, width, filters), not its shape."""
        x = self.norm(self.depthwise(inputs))
        x = keras.activations.gelu(self.expand(x))
        if self.squeeze_excitation is not None:
            x = self.squeeze_excitation(x)
        x = self.layer_scale(self.project(x))
        if self.stochastic_depth is not None:
            x = self.stochastic_depth(x, training=training)
        return inputs + x

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape
