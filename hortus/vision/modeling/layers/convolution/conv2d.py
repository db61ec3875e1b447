"""The convolution that all models are made of."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from hortus.engine import kernels


@keras.saving.register_keras_serializable(package="Hortus")
class Conv2D(keras.layers.Conv2D):
    """`keras.layers.Conv2D`, faster in training where the engine has a faster way.

    Only in training: what is exported consists of plain convolutions, which every format knows.
    """

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        if training and self._is_dense and self.kernel_size == (1, 1):
            return self._finish(kernels.convolution_1x1(inputs, self.kernel, self.strides))
        if training and self._is_dense_3x3:
            (outputs,) = kernels.convolution_3x3([inputs], self.kernel, self.strides)
            return self._finish(outputs)
        return super().call(inputs)

    def train_together(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of several inputs, such as the levels of a pyramid, in training.

        Together where that is faster, otherwise one after the other.
        """
        # In half precision, inputs and kernel would have to be cast as a call casts them.
        types = {self.compute_dtype, *(keras.backend.standardize_dtype(x.dtype) for x in inputs)}
        is_plain = type(self) is Conv2D and self.is_plain and self._is_dense_3x3
        if is_plain and types == {"float32"}:
            outputs = kernels.convolution_3x3.fast(inputs, self.kernel, self.strides)
            if outputs is not None:
                return [self._finish(y) for y in outputs]
        return [self(x, training=True) for x in inputs]

    @property
    def is_plain(self) -> bool:
        """Whether calling it does no more than `call`, so that another way may stand for it."""
        return (
            self.built
            and self._is_dense
            and self.activity_regularizer is None
            and self.quantization_mode is None
        )

    @property
    def _is_dense(self) -> bool:
        return self.data_format == "channels_last" and self.groups == 1

    @property
    def _is_dense_3x3(self) -> bool:
        sizes = self.kernel_size, self.dilation_rate
        return self._is_dense and sizes == ((3, 3), (1, 1)) and self.padding == "same"

    def _finish(self, outputs: Any) -> Any:
        if self.use_bias:
            outputs = ops.add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)
