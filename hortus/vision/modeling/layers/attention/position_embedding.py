"""What is added to the tokens of a vision transformer before its first block."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.blocks.block import Shape
from hortus.vision.modeling.layers.configurable import Configurable


@keras.saving.register_keras_serializable(package="Hortus")
class ClassToken(Configurable, keras.layers.Layer):
    """Puts one learned token in front of the others."""

    def build(self, input_shape: Shape) -> None:
        self.token = self.add_weight(shape=(1, 1, input_shape[-1]), name="cls", initializer="zeros")

    def call(self, inputs: Any) -> Any:
        """(batch, tokens, width) to (batch, 1 + tokens, width)."""
        token = ops.cast(self.token, inputs.dtype)
        token = ops.broadcast_to(token, (ops.shape(inputs)[0], 1, inputs.shape[-1]))
        return ops.concatenate([token, inputs], axis=1)

    def compute_output_shape(self, input_shape: Shape) -> Any:
        batch, tokens, width = input_shape
        return batch, tokens + 1, width


@keras.saving.register_keras_serializable(package="Hortus")
class PositionEmbedding(Configurable, keras.layers.Layer):
    """Adds a learned embedding to each token.

    Args:
        grid: rows and columns of the image's patches.
        stored_grid: rows and columns of the embedding that is kept, and resized to `grid`; None for
            `grid`. So a checkpoint of another image size can be used.
        extra_tokens: tokens in front of those of the patches; theirs are not resized.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(
        self,
        grid: tuple[int, int],
        stored_grid: tuple[int, int] | None = None,
        extra_tokens: int = 0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.grid = tuple(grid)
        self.stored_grid = None if stored_grid is None else tuple(stored_grid)
        self.extra_tokens = extra_tokens

    def build(self, input_shape: Shape) -> None:
        rows, columns = self.stored_grid or self.grid
        self.embedding = self.add_weight(
            shape=(1, self.extra_tokens + rows * columns, input_shape[-1]),
            name="pos_embedding",
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )

    def call(self, inputs: Any) -> Any:
        """Adds to (batch, tokens, width)."""
        embedding = ops.cast(self.embedding, inputs.dtype)
        if self.stored_grid not in (None, self.grid):
            embedding = self._resized(embedding)
        return inputs + embedding

    def _resized(self, embedding: Any) -> Any:
        stored: Any = self.stored_grid
        width = embedding.shape[-1]
        extra, patches = embedding[:, : self.extra_tokens], embedding[:, self.extra_tokens :]
        patches = ops.reshape(patches, (1, *stored, width))
        patches = ops.image.resize(patches, self.grid, interpolation="bilinear")
        patches = ops.reshape(patches, (1, -1, width))
        return ops.concatenate([extra, patches], axis=1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape
