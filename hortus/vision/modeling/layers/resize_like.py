"""Resizing by bilinear interpolation, also where the sizes are known only when the model runs."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.configurable import Configurable


@keras.saving.register_keras_serializable(package="Hortus")
class ResizeLike(Configurable, keras.layers.Layer):
    """Resizes one feature map to the height and width of another, as `resize` does."""

    def call(self, inputs: Any, like: Any) -> Any:
        """(batch, ..., channels) to (batch, height and width of `like`, channels)."""
        return resize(inputs, *ops.shape(like)[1:3])

    def compute_output_shape(self, inputs_shape: Any, like_shape: Any) -> Any:
        return (*inputs_shape[:1], *like_shape[1:3], inputs_shape[-1])


def resize(images: Any, height: Any, width: Any) -> Any:
    """Bilinear interpolation between the centres of pixels; beyond the last one, its value.

    Args:
        images: (batch, any height, any width, channels).
        height: of the result, an int or an integer scalar.
        width: of the result, likewise.
    """
    if tuple(images.shape[1:3]) == (1, 1):
        batch, _, _, channels = ops.shape(images)
        return ops.broadcast_to(images, (batch, height, width, channels))
    if isinstance(height, int) and isinstance(width, int):
        if tuple(images.shape[1:3]) == (height, width):
            return images
        return ops.image.resize(images, (height, width), interpolation="bilinear")
    # Keras resizes to sizes that it knows only. To others, a product with a matrix per axis does.
    _, old_height, old_width, _ = ops.shape(images)
    x = ops.cast(images, "float32")
    x = ops.einsum("oh,bhwc->bowc", _weights(old_height, height), x)
    x = ops.einsum("ow,bhwc->bhoc", _weights(old_width, width), x)
    return ops.cast(x, images.dtype)


def _weights(old: Any, new: Any) -> Any:
    """[new, old] share of each old pixel in each new one, for sizes `old` and `new`."""
    scale = ops.cast(old, "float32") / ops.cast(new, "float32")
    places = (ops.cast(ops.arange(new), "float32") + 0.5) * scale - 0.5
    places = ops.clip(places, 0.0, ops.cast(old, "float32") - 1.0)
    pixels = ops.cast(ops.arange(old), "float32")
    return ops.relu(1.0 - ops.abs(places[:, None] - pixels[None, :]))
