"""Nearest-neighbour upsampling between the levels of a pyramid, for images of any size."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.configurable import Configurable


@keras.saving.register_keras_serializable(package="Hortus")
class UpsampleLike(Configurable, keras.layers.Layer):
    """Repeats each pixel, and cuts off what is more than the finer level has, as `upsample` does.

    Args:
        factor: how often a pixel is repeated in height and in width.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(self, factor: int = 2, **kwargs: Any):
        super().__init__(**kwargs)
        self.factor = factor
        self.built = True

    def call(self, inputs: Any, like: Any) -> Any:
        """(batch, ..., channels) to (batch, height and width of `like`, channels)."""
        return upsample(inputs, self.factor, like)

    def compute_output_shape(self, inputs_shape: Any, like_shape: Any) -> Any:
        return (*inputs_shape[:1], *like_shape[1:3], inputs_shape[-1])


def upsample(x: Any, factor: int, like: Any = None) -> Any:
    """Repeats each pixel of `x`, then crops at the bottom and at the right to the size of `like`.

    An image whose side is no multiple of the stride has levels of sides such as 7 and 4: the
    second, doubled, is one too large.

    Args:
        x: (batch, height, width, channels).
        factor: how often a pixel is repeated in height and in width.
        like: a feature map of the size that is wanted, up to `factor - 1` less than that of `x`
            times `factor`; None for no cropping.
    """
    batch, height, width, channels = ops.shape(x)
    x = ops.reshape(x, (batch, height, 1, width, 1, channels))
    x = ops.broadcast_to(x, (batch, height, factor, width, factor, channels))
    x = ops.reshape(x, (batch, height * factor, width * factor, channels))
    if like is None:
        return x
    if x.shape[1:3] == like.shape[1:3] and None not in x.shape[1:3]:
        return x
    height, width = ops.shape(like)[1:3]
    return x[:, :height, :width]
