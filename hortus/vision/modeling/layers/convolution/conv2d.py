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
        if not training or self.data_format != "channels_last" or self.groups > 1:
            return super().call(inputs)
        outputs = None
        if self.kernel_size == (1, 1):
            outputs = kernels.convolution_1x1(inputs, self.kernel, self.strides)
        elif self._is_plain_3x3():
            (outputs,) = kernels.convolution_3x3([inputs], self.kernel, self.strides) or (None,)
        return super().call(inputs) if outputs is None else self._finish(outputs)

    def train_together(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The outputs of several inputs, such as the levels of a pyramid, in training.

        Returns:
            None where one after the other is as fast.
        """
        if self.data_format != "channels_last" or self.groups > 1 or not self._is_plain_3x3():
            return None
        outputs = kernels.convolution_3x3(inputs, self.kernel, self.strides)
        return None if outputs is None else [self._finish(y) for y in outputs]

    def train_normalized(
        self, inputs: Any, gamma: Any, beta: Any, epsilon: float
    ) -> tuple[Any, Any, Any] | None:
        """The outputs after batch normalisation, in training, with their mean and variance before.

        Returns:
            None where one after the other is as fast.
        """
        is_plain = self.data_format == "channels_last" and self.groups == 1 and not self.use_bias
        if not is_plain or self.activation is not keras.activations.linear:
            return None
        if self.kernel_size != (1, 1) or self.compute_dtype != "float32":
            return None
        return kernels.normalized_convolution_1x1(
            inputs, self.kernel, self.strides, gamma, beta, epsilon=epsilon
        )

    def _is_plain_3x3(self) -> bool:
        sizes = self.kernel_size, self.dilation_rate
        return sizes == ((3, 3), (1, 1)) and self.padding == "same"

    def _finish(self, outputs: Any) -> Any:
        if self.use_bias:
            outputs = ops.add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)
