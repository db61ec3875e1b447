"""The head that judges masks."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from hortus.vision.configs import heads as configs
from hortus.vision.modeling.config_arguments import field_values
from hortus.vision.modeling.heads import factory, initializers
from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain, fresh_initializer
from hortus.vision.modeling.layers.resampling.resize_like import resize


@keras.saving.register_keras_serializable(package="Hortus")
class MaskScoring(Block):
    """How well the mask of each class fits: its IoU (Mask Scoring R-CNN, Huang et al. 2019).

    Args:
        num_classes: length of the output.
        fc_input_size: height and width that the features are resized to before the dense layers.
        num_convs: convolutions before them.
        num_filters: of each of them.
        use_depthwise_convolution: a depthwise 3x3 and a 1x1 instead of a 3x3 convolution, both
            normalised and activated.
        num_fcs: dense layers.
        fc_dims: width of each of them.
        **kwargs: of `Block`; `kernel_initializer` is that of the convolutions.
    """

    def __init__(
        self,
        num_classes: int,
        fc_input_size: Sequence[int],
        num_convs: int = 3,
        num_filters: int = 256,
        use_depthwise_convolution: bool = False,
        num_fcs: int = 2,
        fc_dims: int = 1024,
        **kwargs: Any,
    ):
        super().__init__(**{"kernel_initializer": initializers.HE_FAN_OUT, **kwargs})
        self.num_classes = num_classes
        self.fc_input_size = list(fc_input_size)
        self.num_convs = num_convs
        self.num_filters = num_filters
        self.use_depthwise_convolution = use_depthwise_convolution
        self.num_fcs = num_fcs
        self.fc_dims = fc_dims
        self.convs: list[keras.layers.Layer] = []
        self.conv_norms: list[keras.layers.Layer] = []
        for index in range(1, num_convs + 1):
            self._add_convolution(index)
        self.fcs = []
        self.fc_norms = []
        for index in range(1, num_fcs + 1):
            self.fcs.append(self._dense(fc_dims, f"fc{index}", initializers.UNIFORM_FAN_OUT))
            self.fc_norms.append(self._norm(f"fc{index}_norm"))
        self.scores = self._dense(num_classes, "scores", initializers.SMALL)

    def _add_convolution(self, index: int) -> None:
        kernel_size = 3
        if self.use_depthwise_convolution:
            name = f"depthwise{index}"
            self.convs.append(
                self._depthwise_conv(3, regularizer=self.kernel_regularizer, name=name)
            )
            self.conv_norms.append(self._norm(f"{name}_norm"))
            kernel_size = 1
        name = f"conv{index}"
        self.convs.append(self._conv(self.num_filters, kernel_size, use_bias=True, name=name))
        self.conv_norms.append(self._norm(f"{name}_norm"))

    def _dense(self, units: int, name: str, initializer: Any) -> keras.layers.Layer:
        return keras.layers.Dense(
            units,
            kernel_initializer=fresh_initializer(initializer),
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape: Shape) -> None:
        shape = input_shape
        for conv, norm in zip(self.convs, self.conv_norms, strict=True):
            shape = build_chain(shape, conv, norm)
        shape = (shape[0], math.prod(self.fc_input_size) * (shape[-1] or 0))
        for fc, norm in zip(self.fcs, self.fc_norms, strict=True):
            shape = build_chain(shape, fc, norm)
        self.scores.build(shape)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Logits (batch, height, width, classes) to scores (batch, classes)."""
        x = inputs
        for conv, norm in zip(self.convs, self.conv_norms, strict=True):
            x = self.norm_act.activate(norm(conv(x), training=training))
        x = resize(x, *self.fc_input_size)
        x = ops.reshape(x, (-1, math.prod(self.fc_input_size) * x.shape[-1]))
        for fc, norm in zip(self.fcs, self.fc_norms, strict=True):
            x = self.norm_act.activate(norm(fc(x), training=training))
        return self.scores(x)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (input_shape[0], self.num_classes)


@factory.register_head(configs.MaskScoringHead)
def build_mask_scoring(
    head_config: configs.MaskScoringHead,
    model_config: Any,
    norm_act: Any,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
    name: str | None = None,
) -> MaskScoring:
    """Builds the head from its config."""
    return MaskScoring(
        num_classes=model_config.num_classes,
        **field_values(head_config),
        norm_act=norm_act,
        kernel_regularizer=l2_regularizer,
        name=name,
    )
