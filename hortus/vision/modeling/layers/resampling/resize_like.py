"""Resizing one feature map to the size of another."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.ops.resize import resize

__all__ = ["ResizeLike", "resize"]


@keras.saving.register_keras_serializable(package="Hortus")
class ResizeLike(Configurable, keras.layers.Layer):
    """Resizes one feature map to the height and width of another, as `resize` does."""

    def call(self, inputs: Any, like: Any) -> Any:
        """(batch, ..., channels) to (batch, height and width of `like`, channels)."""
        return resize(inputs, *ops.shape(like)[1:3])

    def compute_output_shape(self, inputs_shape: Any, like_shape: Any) -> Any:
        return (*inputs_shape[:1], *like_shape[1:3], inputs_shape[-1])
