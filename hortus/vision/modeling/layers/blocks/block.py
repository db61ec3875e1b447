"""The base of blocks: several convolutions that work as one layer."""

from typing import Any

import keras

from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.modeling.layers.convolution.conv2d import Conv2D
from hortus.vision.modeling.layers.convolution.symmetric import (
    SymmetricConv2D,
    SymmetricDepthwiseConv2D,
    check_padding,
)
from hortus.vision.modeling.layers.normalization.norm_act import NormAct

Shape = tuple[Any, ...]
"""Sizes, None for those that are not known."""


class Block(Configurable, keras.layers.Layer):
    """Holds what all layers of a block share, and makes them.

    A subclass makes its layers in the constructor, builds them in `build`, and says in
    `compute_output_shape` what comes out, so that a model is put together without tracing.

    Args:
        norm_act: makes normalisation and activations.
        kernel_initializer: of every convolution.
        kernel_regularizer: of every convolution, or None.
        bias_regularizer: of every convolution with a bias, or None.
        padding: of strided convolutions: `same`, or `symmetric` for as much on both sides.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(
        self,
        norm_act: NormAct | None = None,
        kernel_initializer: Any = "VarianceScaling",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        padding: str = "same",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.padding = check_padding(padding)
        self.norm_act = norm_act or NormAct()
        self.kernel_initializer = kernel_initializer
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)

    def _conv(
        self, filters: int, kernel_size: int, *, name: str, use_bias: bool = False, **kwargs: Any
    ) -> keras.layers.Layer:
        make = SymmetricConv2D if self._pads_alike(kernel_size, kwargs) else Conv2D
        return make(
            filters,
            kernel_size,
            padding="same",
            use_bias=use_bias,
            kernel_initializer=fresh_initializer(self.kernel_initializer),
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer if use_bias else None,
            dtype=self.dtype_policy,
            name=name,
            **kwargs,
        )

    def _depthwise_conv(
        self,
        kernel_size: int,
        *,
        name: str,
        regularizer: Any = None,
        **kwargs: Any,
    ) -> keras.layers.Layer:
        is_symmetric = self._pads_alike(kernel_size, kwargs)
        make = SymmetricDepthwiseConv2D if is_symmetric else keras.layers.DepthwiseConv2D
        return make(
            kernel_size,
            padding="same",
            use_bias=False,
            depthwise_initializer=fresh_initializer(self.kernel_initializer),
            depthwise_regularizer=regularizer,
            dtype=self.dtype_policy,
            name=name,
            **kwargs,
        )

    def _pads_alike(self, kernel_size: int, arguments: dict[str, Any]) -> bool:
        """Whether it takes another layer: without stride, `same` pads both sides alike too."""
        return self.padding == "symmetric" and kernel_size > 1 and arguments.get("strides", 1) > 1

    def _norm(self, name: str) -> keras.layers.Layer:
        return self.norm_act.norm(name=name, dtype=self.dtype_policy)


def build_chain(shape: Shape, *layers: keras.layers.Layer | None) -> Shape:
    """Builds layers that follow each other, None left out; returns the last one's output shape."""
    for layer in layers:
        if layer is None:
            continue
        if not layer.built:
            layer.build(shape)
        shape = layer.compute_output_shape(shape)
    return shape


def fresh_initializer(initializer: Any) -> Any:
    """A copy with a seed of its own: an initializer that is used twice gives the same values."""
    if isinstance(initializer, keras.initializers.Initializer):
        return type(initializer).from_config(initializer.get_config())
    try:
        keras.initializers.get(initializer)
    except (ValueError, TypeError):
        raise ValueError(
            f"kernel_initializer must name an initializer of Keras, such as he_normal, "
            f"glorot_uniform, random_uniform or zeros; got {initializer!r}"
        ) from None
    return initializer
