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
        outputs = self.train_together([inputs]) if training else None
        return super().call(inputs) if outputs is None else outputs[0]

    def train_together(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The outputs of several inputs, such as the levels of a pyramid, in training.

        Returns:
            None where one after the other is as fast.
        """
        is_plain = (self.kernel_size, self.strides, self.dilation_rate) == ((3, 3), (1, 1), (1, 1))
        if not is_plain or self.groups > 1 or self.padding != "same":
            return None
        if self.data_format != "channels_last":
            return None
        outputs = kernels.convolution_3x3(inputs, self.kernel)
        if outputs is None:
            return None
        if self.use_bias:
            outputs = [ops.add(y, self.bias) for y in outputs]
        return outputs if self.activation is None else [self.activation(y) for y in outputs]
