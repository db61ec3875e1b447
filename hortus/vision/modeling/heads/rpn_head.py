"""The head of a region proposal network."""

from typing import Any

import keras

from hortus.vision.modeling.heads import initializers
from hortus.vision.modeling.layers.blocks.block import Block, Shape
from hortus.vision.modeling.layers.convolution.multilevel_conv import (
    MultilevelConv,
)
from hortus.vision.modeling.layers.convolution.multilevel_tower import (
    MultilevelTower,
)


@keras.saving.register_keras_serializable(package="Hortus")
class RPNHead(Block):
    """Whether each anchor shows an object, and where (Ren et al. 2015).

    Args:
        min_level: finest level.
        max_level: coarsest level.
        num_anchors_per_location: anchors at every pixel.
        num_convs: convolutions before the predictions.
        num_filters: of each of them.
        use_separable_conv: depthwise separable instead of full convolutions; their kernels are not
            regularised.
        **kwargs: of `Block`; `kernel_initializer` is that of the tower.
    """

    def __init__(
        self,
        min_level: int,
        max_level: int,
        num_anchors_per_location: int,
        num_convs: int = 1,
        num_filters: int = 256,
        use_separable_conv: bool = False,
        **kwargs: Any,
    ):
        initializer = "glorot_uniform" if use_separable_conv else initializers.SMALL
        super().__init__(**{"kernel_initializer": initializer, **kwargs})
        self.min_level = min_level
        self.max_level = max_level
        self.num_anchors_per_location = num_anchors_per_location
        self.num_convs = num_convs
        self.num_filters = num_filters
        self.use_separable_conv = use_separable_conv
        self.tower = MultilevelTower(
            range(min_level, max_level + 1),
            num_convs,
            num_filters,
            separable=use_separable_conv,
            norm_act=self.norm_act,
            kernel_initializer=self.kernel_initializer,
            kernel_regularizer=self._regularizer(),
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name="tower",
        )
        self.scores = self._prediction("scores", num_anchors_per_location)
        self.boxes = self._prediction("boxes", num_anchors_per_location * 4)

    def _regularizer(self) -> Any:
        return None if self.use_separable_conv else self.kernel_regularizer

    def _prediction(self, name: str, filters: int) -> MultilevelConv:
        return MultilevelConv(
            range(self.min_level, self.max_level + 1),
            filters,
            kernel_size=1,
            separable=self.use_separable_conv,
            kernel_initializer=("glorot_uniform" if self.use_separable_conv else initializers.TINY),
            kernel_regularizer=self._regularizer(),
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape: dict[str, Shape]) -> None:
        self.tower.build(input_shape)
        shapes = self.tower.compute_output_shape(input_shape)
        self.scores.build(shapes)
        self.boxes.build(shapes)

    def call(
        self, features: dict[str, Any], training: bool | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Looks at features of all levels.

        Args:
            features: {level: (batch, height, width, channels)}.
            training: normalise by the batch's own statistics.

        Returns:
            Logits, {level: (batch, height, width, anchors)}, and codes of the boxes,
            {level: (batch, height, width, anchors * 4)}.
        """
        x = self.tower(features, training=training)
        return self.scores(x), self.boxes(x)

    def compute_output_shape(self, features_shape: dict[str, Shape]) -> Any:
        shapes = self.tower.compute_output_shape(features_shape)
        return self.scores.compute_output_shape(shapes), self.boxes.compute_output_shape(shapes)
