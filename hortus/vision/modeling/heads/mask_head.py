"""The head that draws masks."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.heads import initializers
from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain, fresh_initializer
from hortus.vision.modeling.layers.convolution.biased_convolution import convolution


@keras.saving.register_keras_serializable(package="Hortus")
class MaskHead(Block):
    """The mask of every region, for its class (Mask R-CNN, He et al. 2017).

    Args:
        num_classes: the background class 0 included.
        upsample_factor: side of the mask as a multiple of that of the features.
        num_convs: convolutions before the upsampling.
        num_filters: of each of them.
        use_separable_conv: depthwise separable instead of full convolutions, but for upsampling.
        class_agnostic: one mask for all classes instead of one for each.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        num_classes: int,
        upsample_factor: int = 2,
        num_convs: int = 4,
        num_filters: int = 256,
        use_separable_conv: bool = False,
        class_agnostic: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**{"kernel_initializer": initializers.HE_FAN_OUT, **kwargs})
        self.num_classes = num_classes
        self.upsample_factor = upsample_factor
        self.num_convs = num_convs
        self.num_filters = num_filters
        self.use_separable_conv = use_separable_conv
        self.class_agnostic = class_agnostic
        self.convs = []
        self.norms = []
        for index in range(1, num_convs + 1):
            self.convs.append(self._convolution(num_filters, 3, f"conv{index}"))
            self.norms.append(self._norm(f"norm{index}"))
        self.upsample = keras.layers.Conv2DTranspose(
            num_filters,
            upsample_factor,
            strides=upsample_factor,
            padding="valid",
            kernel_initializer=fresh_initializer(self.kernel_initializer),
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name="upsample",
        )
        self.upsample_norm = self._norm("upsample_norm")
        self.logits = self._convolution(1 if class_agnostic else num_classes, 1, "logits")

    def _convolution(self, filters: int, kernel_size: int, name: str) -> keras.layers.Layer:
        return convolution(
            filters,
            kernel_size,
            separable=self.use_separable_conv,
            kernel_initializer=self.kernel_initializer,
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape: tuple[Shape, Shape]) -> None:
        features, _ = input_shape
        shape = (None, *features[2:])
        for conv, norm in zip(self.convs, self.norms, strict=True):
            shape = build_chain(shape, conv, norm)
        build_chain(shape, self.upsample, self.upsample_norm, self.logits)

    def call(self, inputs: tuple[Any, Any], training: bool | None = None) -> Any:
        """Logits of masks.

        Args:
            inputs: features of regions (batch, regions, height, width, channels), and the class of
                each region (batch, regions), whose mask is wanted.
            training: normalise by the batch's own statistics.

        Returns:
            (batch, regions, height * upsample_factor, width * upsample_factor).
        """
        features, classes = inputs
        batch, regions, height, width, _ = ops.shape(features)
        x = ops.reshape(features, (-1, *features.shape[2:]))
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = self.norm_act.activate(norm(conv(x), training=training))
        x = self.norm_act.activate(self.upsample_norm(self.upsample(x), training=training))
        x = self.logits(x)
        factor = self.upsample_factor
        x = ops.reshape(x, (batch, regions, height * factor, width * factor, x.shape[-1]))
        if not self.class_agnostic:
            # Regions that only fill up a batch may have the class -1.
            index = ops.maximum(ops.cast(classes, "int32"), 0)[:, :, None, None, None]
            x = ops.take_along_axis(x, index, axis=-1)
        return x[..., 0]

    def compute_output_shape(self, input_shape: tuple[Shape, Shape]) -> Shape:
        batch, regions, *sides, _ = input_shape[0]
        return (batch, regions, *(side and side * self.upsample_factor for side in sides))
