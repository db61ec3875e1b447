"""The encoder block of vision transformers."""

from typing import Any

import keras

from hortus.vision.modeling.layers import activations
from hortus.vision.modeling.layers.attention.multi_head_attention import MultiHeadSelfAttention
from hortus.vision.modeling.layers.blocks.block import Shape
from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.modeling.layers.normalization.layer_normalization import LayerNormalization
from hortus.vision.modeling.layers.normalization.layer_scale import LayerScale
from hortus.vision.modeling.layers.regularization.stochastic_depth import StochasticDepth


@keras.saving.register_keras_serializable(package="Hortus")
class TransformerEncoderBlock(Configurable, keras.layers.Layer):
    """Self-attention and an MLP, each after a normalisation and with a shortcut.

    Args:
        num_heads: of the attention.
        mlp_dim: hidden width of the MLP.
        dropout_rate: share of the outputs of attention and MLP dropped in training, 0 to 1.
        attention_dropout_rate: share of the attention weights dropped in training, 0 to 1.
        stochastic_depth_drop_rate: chance that an example skips a part in training, 0 to 1.
        layer_scale_init_value: start value of LayerScale; 0 leaves it out.
        activation: of the MLP.
        kernel_initializer: of all kernels.
        kernel_regularizer: of all kernels, or None.
        return_scores: also return the attention (batch, heads, tokens, tokens).
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(
        self,
        num_heads: int,
        mlp_dim: int,
        dropout_rate: float = 0.0,
        attention_dropout_rate: float = 0.0,
        stochastic_depth_drop_rate: float = 0.0,
        layer_scale_init_value: float = 0.0,
        activation: Any = "approximate_gelu",
        kernel_initializer: Any = "glorot_uniform",
        kernel_regularizer: Any = None,
        return_scores: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.dropout_rate = dropout_rate
        self.attention_dropout_rate = attention_dropout_rate
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        self.layer_scale_init_value = layer_scale_init_value
        self.activation = activation
        self.kernel_initializer = kernel_initializer
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.return_scores = return_scores

        self.attention_norm = self._norm("attention_norm")
        self.attention = MultiHeadSelfAttention(
            num_heads,
            attention_dropout_rate,
            kernel_initializer=kernel_initializer,
            kernel_regularizer=self.kernel_regularizer,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_rest = self._after("attention")
        self.mlp_norm = self._norm("mlp_norm")
        self.mlp_hidden = self._dense(mlp_dim, "mlp_hidden", activations.get(activation))
        self.mlp_rest = self._after("mlp")

    def _norm(self, name: str) -> keras.layers.Layer:
        return LayerNormalization(dtype=self.dtype_policy, name=name)

    def _dense(self, units: int, name: str, activation: Any = None) -> keras.layers.Layer:
        return keras.layers.Dense(
            units,
            activation=activation,
            kernel_initializer=self.kernel_initializer,
            kernel_regularizer=self.kernel_regularizer,
            dtype=self.dtype_policy,
            name=name,
        )

    def _after(self, name: str) -> list[keras.layers.Layer]:
        """What a part's output goes through before it is added."""
        layers: list[keras.layers.Layer] = []
        policy = self.dtype_policy
        if self.dropout_rate:
            layers.append(
                keras.layers.Dropout(self.dropout_rate, dtype=policy, name=f"{name}_dropout")
            )
        if self.layer_scale_init_value:
            layers.append(
                LayerScale(
                    self.layer_scale_init_value, rank=3, dtype=policy, name=f"{name}_layer_scale"
                )
            )
        if self.stochastic_depth_drop_rate:
            layers.append(
                StochasticDepth(
                    self.stochastic_depth_drop_rate, dtype=policy, name=f"{name}_stochastic_depth"
                )
            )
        return layers

    def build(self, input_shape: Shape) -> None:
        # Made here, as only here the width is known.
        self.mlp_output = self._dense(input_shape[-1], "mlp_output")
        for layer in (self.attention_norm, self.attention, *self.attention_rest, self.mlp_norm):
            layer.build(input_shape)
        self.mlp_hidden.build(input_shape)
        self.mlp_output.build((*input_shape[:-1], self.mlp_dim))
        for layer in self.mlp_rest:
            layer.build(input_shape)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Encodes tokens (batch, tokens, width)."""
        attended = self.attention(
            self.attention_norm(inputs), training=training, return_scores=self.return_scores
        )
        x, scores = attended if self.return_scores else (attended, None)
        x = inputs + _apply(self.attention_rest, x, training)
        y = self.mlp_output(self.mlp_hidden(self.mlp_norm(x)))
        x = x + _apply(self.mlp_rest, y, training)
        return (x, scores) if self.return_scores else x

    def compute_output_shape(self, input_shape: Shape) -> Any:
        if not self.return_scores:
            return input_shape
        batch, tokens, _ = input_shape
        return input_shape, (batch, self.num_heads, tokens, tokens)


def _apply(layers: list[keras.layers.Layer], x: Any, training: bool | None) -> Any:
    for layer in layers:
        x = layer(x) if isinstance(layer, LayerScale) else layer(x, training=training)
    return x
