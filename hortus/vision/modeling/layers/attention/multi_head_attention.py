"""Self-attention of vision transformers."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.configurable import Configurable


@keras.saving.register_keras_serializable(package="Hortus")
class MultiHeadSelfAttention(Configurable, keras.layers.Layer):
    """Each token attends to all tokens (Vaswani et al. 2017).

    Queries, keys and values have kernels of their own, as in Keras, and are computed by one
    multiplication.

    Args:
        num_heads: number of heads; the width of a token must be a multiple of it.
        dropout_rate: share of the attention weights dropped in training, 0 to 1.
        kernel_initializer: of a kernel, seen as a matrix (inputs, outputs).
        kernel_regularizer: of all kernels, or None.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(
        self,
        num_heads: int,
        dropout_rate: float = 0.0,
        kernel_initializer: Any = "glorot_uniform",
        kernel_regularizer: Any = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.kernel_initializer = kernel_initializer
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.dropout = None
        if dropout_rate:
            self.dropout = keras.layers.Dropout(
                dropout_rate, dtype=self.dtype_policy, name="dropout"
            )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = input_shape[-1]
        if width is None or width % self.num_heads:
            raise ValueError(f"{width} features cannot be split over {self.num_heads} heads")
        split = (self.num_heads, width // self.num_heads)
        for name in ("query", "key", "value"):
            setattr(self, f"{name}_kernel", self._kernel(name, (width, *split)))
            setattr(self, f"{name}_bias", self._bias(name, split))
        self.output_kernel = self._kernel("output", (*split, width))
        self.output_bias = self._bias("output", (width,))

    def _kernel(self, name: str, shape: tuple[int, ...]) -> keras.Variable:
        # Initializers count the inputs and outputs of a matrix, not of a split one.
        width = shape[0] if name != "output" else shape[-1]
        initializer = keras.initializers.get(self.kernel_initializer)
        initializer = type(initializer).from_config(initializer.get_config())
        return self.add_weight(
            shape=shape,
            name=f"{name}_kernel",
            initializer=lambda _, dtype: ops.reshape(initializer((width, width), dtype), shape),
            regularizer=self.kernel_regularizer,
        )

    def _bias(self, name: str, shape: tuple[int, ...]) -> keras.Variable:
        return self.add_weight(shape=shape, name=f"{name}_bias", initializer="zeros")

    def call(self, inputs: Any, training: bool | None = None, return_scores: bool = False) -> Any:
        """Attends over tokens (batch, tokens, width).

        Returns:
            Like `inputs`; with `return_scores` also the attention (batch, heads, tokens, tokens).
        """
        tokens, width = inputs.shape[1:]
        size = width // self.num_heads
        # The scale goes to the weights, which are smaller than the queries.
        scale = size**-0.5
        kernels = [self.query_kernel * scale, self.key_kernel, self.value_kernel]
        biases = [self.query_bias * scale, self.key_bias, self.value_bias]
        kernel = ops.concatenate([ops.reshape(k, (width, width)) for k in kernels], axis=1)
        bias = ops.concatenate([ops.reshape(b, (width,)) for b in biases])
        x = ops.add(ops.matmul(inputs, kernel), bias)
        query, key, value = (
            ops.reshape(part, (-1, tokens, self.num_heads, size))
            for part in ops.split(x, 3, axis=-1)
        )
        logits = ops.matmul(ops.transpose(query, (0, 2, 1, 3)), ops.transpose(key, (0, 2, 3, 1)))
        scores = ops.softmax(logits)
        kept = scores if self.dropout is None else self.dropout(scores, training=training)
        x = ops.matmul(kept, ops.transpose(value, (0, 2, 1, 3)))
        x = ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (-1, tokens, width))
        x = ops.matmul(x, ops.reshape(self.output_kernel, (width, width)))
        x = ops.add(x, self.output_bias)
        return (x, scores) if return_scores else x

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> Any:
        return input_shape
