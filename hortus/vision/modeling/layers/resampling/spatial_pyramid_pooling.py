"""Atrous spatial pyramid pooling: what is here, what is around here, and what the image shows."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.resampling.resize_like import resize


@keras.saving.register_keras_serializable(package="Hortus")
class SpatialPyramidPooling(Block):
    """Atrous spatial pyramid pooling of DeepLab V3 (Chen et al. 2017).

    A 1x1 convolution, dilated 3x3 convolutions and a pooled branch look at the same features; a
    1x1 convolution joins them. Each convolution is normalised and activated.

    Args:
        filters: of every branch and of the output.
        dilation_rates: of the 3x3 convolutions, one each.
        pool_size: height and width of the windows that are pooled, in pixels of the features, at
            most their own size; None or empty pools all of them.
        dropout_rate: share of the output dropped in training, 0 to 1.
        use_depthwise_convolution: depthwise separable instead of full dilated convolutions.
        regularize_depthwise: regularise the depthwise kernels too.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        filters: int,
        dilation_rates: Sequence[int],
        pool_size: Sequence[int] | None = None,
        dropout_rate: float = 0.0,
        use_depthwise_convolution: bool = False,
        regularize_depthwise: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.filters = filters
        self.dilation_rates = list(dilation_rates)
        self.pool_size = list(pool_size) if pool_size else None
        self.dropout_rate = dropout_rate
        self.use_depthwise_convolution = use_depthwise_convolution
        self.regularize_depthwise = regularize_depthwise

        self.plain = self._conv(filters, 1, name="plain")
        self.plain_norm = self._norm("plain_norm")
        self.depthwise: list[keras.layers.Layer] = []
        self.dilated: list[keras.layers.Layer] = []
        self.dilated_norms: list[keras.layers.Layer] = []
        for index, rate in enumerate(self.dilation_rates):
            self._add_dilated(rate, name=f"dilated{index + 1}")
        self.pool_conv = self._conv(filters, 1, name="pool")
        self.pool_norm = self._norm("pool_norm")
        self.project = self._conv(filters, 1, name="project")
        self.project_norm = self._norm("project_norm")
        self.dropout = keras.layers.Dropout(dropout_rate, dtype=self.dtype_policy, name="dropout")

    def _add_dilated(self, rate: int, name: str) -> None:
        if self.use_depthwise_convolution:
            regularizer = self.kernel_regularizer if self.regularize_depthwise else None
            self.depthwise.append(
                self._depthwise_conv(
                    3, dilation_rate=rate, regularizer=regularizer, name=f"{name}_depthwise"
                )
            )
            self.dilated.append(self._conv(self.filters, 1, name=name))
        else:
            self.dilated.append(self._conv(self.filters, 3, dilation_rate=rate, name=name))
        self.dilated_norms.append(self._norm(f"{name}_norm"))

    def _branches(self) -> list[list[keras.layers.Layer]]:
        """Convolutions, then normalisation, of each branch but the pooled one."""
        depthwise = [[layer] for layer in self.depthwise] or [[] for _ in self.dilated]
        dilated = [
            [*first, conv, norm]
            for first, conv, norm in zip(depthwise, self.dilated, self.dilated_norms, strict=True)
        ]
        return [[self.plain, self.plain_norm], *dilated]

    def build(self, input_shape: Shape) -> None:
        for branch in self._branches():
            build_chain(input_shape, *branch)
        build_chain((input_shape[0], 1, 1, input_shape[-1]), self.pool_conv, self.pool_norm)
        joined = (*input_shape[:-1], self.filters * (len(self.dilation_rates) + 2))
        build_chain(joined, self.project, self.project_norm)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, channels) to (batch, height, width, filters)."""
        outputs = []
        for *convolutions, norm in self._branches():
            x = inputs
            for convolution in convolutions:
                x = convolution(x)
            outputs.append(self.norm_act.activate(norm(x, training=training)))
        x = self.pool_norm(self.pool_conv(self._pool(inputs)), training=training)
        outputs.append(resize(self.norm_act.activate(x), *ops.shape(inputs)[1:3]))
        x = self.project(ops.concatenate(outputs, axis=-1))
        x = self.norm_act.activate(self.project_norm(x, training=training))
        return self.dropout(x, training=training)

    def _pool(self, x: Any) -> Any:
        """Means over windows side by side; over all of `x` without a window."""
        if self.pool_size is None:
            return ops.mean(x, axis=(1, 2), keepdims=True)
        window = tuple(self.pool_size)
        if None not in x.shape[1:3]:
            window = tuple(min(pair) for pair in zip(window, x.shape[1:3], strict=True))
            return ops.average_pool(x, window, strides=window, padding="valid")
        # Whether the window fits shows only when the model runs. Padded by zeros it always does;
        # then a window that saw zeros is cut off or, where it is the only one, scaled up.
        sides = ops.shape(x)[1:3]
        x = ops.pad(x, ((0, 0), *((0, size - 1) for size in window), (0, 0)))
        x = ops.average_pool(x, window, strides=window, padding="valid")
        pairs = list(zip(window, sides, strict=True))
        rows, columns = (ops.maximum(side // size, 1) for size, side in pairs)
        scales = [size / ops.cast(ops.minimum(side, size), "float32") for size, side in pairs]
        return x[:, :rows, :columns] * ops.cast(scales[0] * scales[1], x.dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.filters)
