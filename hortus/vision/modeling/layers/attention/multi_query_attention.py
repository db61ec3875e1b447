"""The attention of MobileNet V4: all heads share one key and one value."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain, fresh_initializer
from hortus.vision.modeling.layers.normalization.layer_scale import LayerScale
from hortus.vision.modeling.layers.regularization.stochastic_depth import StochasticDepth


@keras.saving.register_keras_serializable(package="Hortus")
class MultiQueryAttention(Block):
    """Self-attention over the pixels of a feature map (Shazeer 2019).

    Args:
        num_heads: number of queries per pixel.
        key_dim: width of a query and of the key.
        value_dim: width of the value.
        kv_strides: keys and values are taken this much coarser, by depthwise convolutions.
        kv_kernel_size: of those convolutions.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int,
        kv_strides: int = 1,
        kv_kernel_size: int = 3,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.kv_strides = kv_strides
        self.kv_kernel_size = kv_kernel_size
        if kv_strides > 1:
            self.query = self._conv(num_heads * key_dim, 1, name="query")
            self.key_path = self._coarse("key", key_dim)
            self.value_path = self._coarse("value", value_dim)

    def _coarse(self, name: str, filters: int) -> list[keras.layers.Layer]:
        return [
            self._depthwise_conv(
                self.kv_kernel_size, strides=self.kv_strides, name=f"{name}_depthwise"
            ),
            self._norm(f"{name}_norm"),
            self._conv(filters, 1, name=name),
        ]

    def build(self, input_shape: Shape) -> None:
        width = input_shape[-1]
        if self.kv_strides > 1:
            # Made here, as only here the width is known.
            self.output_conv = self._conv(width, 1, name="output")
            build_chain(input_shape, self.query)
            build_chain(input_shape, *self.key_path)
            build_chain(input_shape, *self.value_path)
            self.output_conv.build((*input_shape[:-1], self.num_heads * self.value_dim))
            return
        self.query_kernel = self._kernel("query", (self.num_heads, self.key_dim, width))
        self.key_kernel = self._kernel("key", (width, self.key_dim))
        self.value_kernel = self._kernel("value", (width, self.value_dim))
        self.output_kernel = self._kernel("output", (width, self.num_heads, self.value_dim))

    def _kernel(self, name: str, shape: tuple[int, ...]) -> keras.Variable:
        return self.add_weight(
            shape=shape,
            name=name,
            initializer=fresh_initializer(self.kernel_initializer),
            regularizer=self.kernel_regularizer,
        )

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, channels) to the same."""
        if self.kv_strides > 1:
            query = ops.reshape(
                self.query(inputs), (*_pixel_shape(inputs), self.num_heads, self.key_dim)
            )
            key, value = inputs, inputs
            for layer in self.key_path:
                key = _apply(layer, key, training)
            for layer in self.value_path:
                value = _apply(layer, value, training)
            attended = self._attend(query, _pixels(key), _pixels(value))
            attended = ops.reshape(
                attended, (*_image_shape(inputs), self.num_heads * self.value_dim)
            )
            return self.output_conv(attended)
        pixels = _pixels(inputs)
        query = ops.einsum("bnd,hkd->bnhk", pixels, self.query_kernel)
        key = ops.matmul(pixels, self.key_kernel)
        value = ops.matmul(pixels, self.value_kernel)
        outputs = ops.einsum("bnhv,dhv->bnd", self._attend(query, key, value), self.output_kernel)
        return ops.reshape(outputs, (*_image_shape(inputs), inputs.shape[-1]))

    def _attend(self, query: Any, key: Any, value: Any) -> Any:
        """Queries (batch, n, heads, key), keys (batch, m, key): values (batch, n, heads, value)."""
        logits = ops.einsum("bnhk,bmk->bnhm", query, key) * self.key_dim**-0.5
        weights = ops.cast(ops.softmax(ops.cast(logits, "float32")), value.dtype)
        return ops.einsum("bnhm,bmv->bnhv", weights, value)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape


@keras.saving.register_keras_serializable(package="Hortus")
class MultiQueryAttentionBlock(Block):
    """Normalisation, multi-query attention and a shortcut (Qin et al. 2024).

    Args:
        num_heads: number of queries per pixel.
        key_dim: width of a query and of the key.
        value_dim: width of the value.
        kv_strides: keys and values are taken this much coarser.
        layer_scale_init_value: start value of LayerScale; None leaves it out.
        stochastic_depth_drop_rate: chance that an example skips the block in training.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int,
        kv_strides: int = 1,
        layer_scale_init_value: float | None = 1e-5,
        stochastic_depth_drop_rate: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.kv_strides = kv_strides
        self.layer_scale_init_value = layer_scale_init_value
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        self.norm = self._norm("norm")
        self.attention = MultiQueryAttention(
            num_heads,
            key_dim,
            value_dim,
            kv_strides,
            norm_act=self.norm_act,
            kernel_initializer=self.kernel_initializer,
            kernel_regularizer=self.kernel_regularizer,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.layer_scale = None
        if layer_scale_init_value is not None:
            self.layer_scale = LayerScale(
                layer_scale_init_value, dtype=self.dtype_policy, name="layer_scale"
            )
        self.stochastic_depth = None
        if stochastic_depth_drop_rate:
            self.stochastic_depth = StochasticDepth(
                stochastic_depth_drop_rate, dtype=self.dtype_policy, name="stochastic_depth"
            )

    def build(self, input_shape: Shape) -> None:
        build_chain(input_shape, self.norm, self.attention, self.layer_scale)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, channels) to the same."""
        x = self.attention(self.norm(inputs, training=training), training=training)
        if self.layer_scale is not None:
            x = self.layer_scale(x)
        if self.stochastic_depth is not None:
            x = self.stochastic_depth(x, training=training)
        return x + inputs

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape


def _apply(layer: keras.layers.Layer, x: Any, training: bool | None) -> Any:
    if isinstance(layer, keras.layers.BatchNormalization):
        return layer(x, training=training)
    return layer(x)


def _image_shape(x: Any) -> tuple[Any, ...]:
    """(batch, height, width), the batch as -1 where the others are known."""
    _, height, width, _ = x.shape
    return (-1, height, width) if height and width else tuple(ops.shape(x)[:3])


def _pixel_shape(x: Any) -> tuple[Any, Any]:
    """(batch, height * width)."""
    batch, height, width = _image_shape(x)
    return batch, height * width


def _pixels(x: Any) -> Any:
    """(batch, height, width, channels) to (batch, height * width, channels)."""
    return ops.reshape(x, (*_pixel_shape(x), x.shape[-1]))
