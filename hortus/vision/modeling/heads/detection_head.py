"""The second stage of a two-stage detector."""

import math
from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.heads import initializers
from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain, fresh_initializer
from hortus.vision.modeling.layers.convolution.biased_convolution import convolution


@keras.saving.register_keras_serializable(package="Hortus")
class DetectionHead(Block):
    """Class and refined box of every region (Faster R-CNN, Ren et al. 2015).

    Args:
        num_classes: the background class 0 included.
        num_convs: convolutions before the dense layers.
        num_filters: of each of them.
        use_separable_conv: depthwise separable instead of full convolutions.
        num_fcs: dense layers.
        fc_dims: width of each of them.
        class_agnostic_bbox_pred: one box for all classes instead of one for each.
        **kwargs: of `Block`; `kernel_initializer` is that of the convolutions.
    """

    def __init__(
        self,
        num_classes: int,
        num_convs: int = 0,
        num_filters: int = 256,
        use_separable_conv: bool = False,
        num_fcs: int = 2,
        fc_dims: int = 1024,
        class_agnostic_bbox_pred: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**{"kernel_initializer": initializers.HE_FAN_OUT, **kwargs})
        self.num_classes = num_classes
        self.num_convs = num_convs
        self.num_filters = num_filters
        self.use_separable_conv = use_separable_conv
        self.num_fcs = num_fcs
        self.fc_dims = fc_dims
        self.class_agnostic_bbox_pred = class_agnostic_bbox_pred
        self.convs = []
        self.conv_norms = []
        for index in range(1, num_convs + 1):
            self.convs.append(
                convolution(
                    num_filters,
                    3,
                    separable=use_separable_conv,
                    kernel_initializer=self.kernel_initializer,
                    kernel_regularizer=self.kernel_regularizer,
                    bias_regularizer=self.bias_regularizer,
                    dtype=self.dtype_policy,
                    name=f"conv{index}",
                )
            )
            self.conv_norms.append(self._norm(f"conv_norm{index}"))
        self.fcs = []
        self.fc_norms = []
        for index in range(1, num_fcs + 1):
            self.fcs.append(self._dense(fc_dims, f"fc{index}", initializers.UNIFORM_FAN_OUT))
            self.fc_norms.append(self._norm(f"fc_norm{index}"))
        boxes = 1 if class_agnostic_bbox_pred else num_classes
        self.scores = self._dense(num_classes, "scores", initializers.SMALL)
        self.boxes = self._dense(boxes * 4, "boxes", keras.initializers.RandomNormal(stddev=0.001))

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
        shape = (None, *input_shape[2:])
        for conv, norm in zip(self.convs, self.conv_norms, strict=True):
            shape = build_chain(shape, conv, norm)
        shape = (None, math.prod(shape[1:]))
        for fc, norm in zip(self.fcs, self.fc_norms, strict=True):
            shape = build_chain(shape, fc, norm)
        self.scores.build(shape)
        self.boxes.build(shape)

    def call(self, inputs: Any, training: bool | None = None) -> tuple[Any, Any]:
        """Looks at the features of regions.

        Args:
            inputs: (batch, regions, height, width, channels).
            training: normalise by the batch's own statistics.

        Returns:
            Logits (batch, regions, classes), and codes of the boxes (batch, regions, classes * 4);
            without `class_agnostic_bbox_pred`, of one class after the other.
        """
        batch, regions = ops.shape(inputs)[:2]
        x = ops.reshape(inputs, (-1, *inputs.shape[2:]))
        for conv, norm in zip(self.convs, self.conv_norms, strict=True):
            x = self.norm_act.activate(norm(conv(x), training=training))
        x = ops.reshape(x, (-1, math.prod(x.shape[1:])))
        for fc, norm in zip(self.fcs, self.fc_norms, strict=True):
            x = self.norm_act.activate(norm(fc(x), training=training))
        outputs = (layer(x) for layer in (self.scores, self.boxes))
        scores, boxes = (ops.reshape(x, (batch, regions, x.shape[-1])) for x in outputs)
        return scores, boxes

    def compute_output_shape(self, input_shape: Shape) -> Any:
        return tuple((*input_shape[:2], layer.units) for layer in (self.scores, self.boxes))
