"""Brings features of one level to the size and width of another, between blocks of SpineNet."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.convolution.conv_norm import conv_norm


class _Resampling(Block):
    """The end that both kinds share: to the new width, and up to a finer level."""

    def __init__(self, filters: int, coarser_by: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.filters = filters
        self.coarser_by = coarser_by
        self.expand = self._conv(filters, 1, name="expand")
        self.expand_norm = self._norm("expand_norm")
        # At the very end: a 1x1 convolution and the statistics of a batch are the same whether each
        # pixel is there once or often, but not their price.
        self.upsample = None
        if coarser_by < 0:
            self.upsample = keras.layers.UpSampling2D(
                2**-coarser_by, interpolation="nearest", dtype=self.dtype_policy, name="upsample"
            )

    def _downsample(self, x: Any, training: bool | None) -> Any:
        raise NotImplementedError

    def _downsampled_shape(self, shape: Shape) -> Shape:
        """Shape after `_downsample`, whose layers are built on the way."""
        raise NotImplementedError

    def build(self, input_shape: Shape) -> None:
        build_chain(self._downsampled_shape(input_shape), self.expand, self.expand_norm)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, channels) to (batch, ..., filters), normalised, not activated."""
        x = self._downsample(inputs, training)
        x = conv_norm(self.expand, self.expand_norm, x, training)
        return x if self.upsample is None else self.upsample(x)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return build_chain(self._downsampled_shape(input_shape), self.expand, self.upsample)


@keras.saving.register_keras_serializable(package="Hortus")
class ScaleResampling(_Resampling):
    """Resampling between the levels of SpineNet (Du et al. 2019).

    A 1x1 convolution makes the features slim. Then, towards a coarser level, come a 3x3 convolution
    of stride 2 and a max pooling for each further level; towards a finer one, each pixel is
    repeated. Another 1x1 convolution gives them their new width.

    Args:
        filters: of the output.
        reduced_filters: in between.
        coarser_by: levels from the input to the output; negative towards a finer one.
        **kwargs: of `Block`.
    """

    def __init__(self, filters: int, reduced_filters: int, coarser_by: int, **kwargs: Any):
        super().__init__(filters, coarser_by, **kwargs)
        self.reduced_filters = reduced_filters
        self.reduce = self._conv(reduced_filters, 1, name="reduce")
        self.reduce_norm = self._norm("reduce_norm")
        self.stride: keras.layers.Layer = None
        self.stride_norm: keras.layers.Layer = None
        if coarser_by > 0:
            self.stride = self._conv(reduced_filters, 3, strides=2, name="stride")
            self.stride_norm = self._norm("stride_norm")

    def _downsample(self, x: Any, training: bool | None) -> Any:
        x = self.norm_act.activate(conv_norm(self.reduce, self.reduce_norm, x, training))
        if self.stride is not None:
            x = self.norm_act.activate(self.stride_norm(self.stride(x), training=training))
        for _ in range(self.coarser_by - 1):
            x = ops.max_pool(x, 3, 2, padding="same")
        return x

    def _downsampled_shape(self, shape: Shape) -> Shape:
        shape = build_chain(shape, self.reduce, self.reduce_norm, self.stride, self.stride_norm)
        for _ in range(self.coarser_by - 1):
            shape = (shape[0], *(side and -(-side // 2) for side in shape[1:3]), shape[3])
        return shape


@keras.saving.register_keras_serializable(package="Hortus")
class DepthwiseScaleResampling(_Resampling):
    """Resampling between the levels of Mobile SpineNet (Du et al. 2020).

    Towards a coarser level, a depthwise 3x3 convolution of stride 2 for each; towards a finer one,
    each pixel is repeated. A 1x1 convolution gives the features their new width.

    Args:
        filters: of the output.
        coarser_by: levels from the input to the output; negative towards a finer one.
        **kwargs: of `Block`.
    """

    def __init__(self, filters: int, coarser_by: int, **kwargs: Any):
        super().__init__(filters, coarser_by, **kwargs)
        self.strides = []
        self.stride_norms = []
        for index in range(1, coarser_by + 1):
            self.strides.append(self._depthwise_conv(3, strides=2, name=f"stride{index}"))
            self.stride_norms.append(self._norm(f"stride_norm{index}"))

    def _downsample(self, x: Any, training: bool | None) -> Any:
        for stride, norm in zip(self.strides, self.stride_norms, strict=True):
            x = self.norm_act.activate(norm(stride(x), training=training))
        return x

    def _downsampled_shape(self, shape: Shape) -> Shape:
        for stride, norm in zip(self.strides, self.stride_norms, strict=True):
            shape = build_chain(shape, stride, norm)
        return shape
