"""EfficientNet (Tan and Le 2019)."""

import math
from typing import Any, NamedTuple

import keras

from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones.backbone import IMAGES, Backbone, image_input
from hortus.vision.modeling.backbones.builder import builder_of
from hortus.vision.modeling.layers.blocks.inverted_bottleneck import InvertedBottleneckBlock
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.layers.regularization.stochastic_depth import stochastic_depth_rate
from hortus.vision.modeling.layers.round_filters import round_filters


class _Stage(NamedTuple):
    kernel_size: int
    strides: int
    expand_ratio: int
    filters: int
    repeats: int
    level: str | None = None


STAGES = (
    _Stage(3, 1, 1, 16, 1),
    _Stage(3, 2, 6, 24, 2, level="2"),
    _Stage(5, 2, 6, 40, 2, level="3"),
    _Stage(3, 2, 6, 80, 3),
    _Stage(5, 1, 6, 112, 3, level="4"),
    _Stage(5, 2, 6, 192, 4),
    _Stage(3, 1, 6, 320, 1, level="5"),
)
"""The blocks of b0."""

SCALES = {
    "b0": (1.0, 1.0),
    "b1": (1.0, 1.1),
    "b2": (1.1, 1.2),
    "b3": (1.2, 1.4),
    "b4": (1.4, 1.8),
    "b5": (1.6, 2.2),
    "b6": (1.8, 2.6),
    "b7": (2.0, 3.1),
}
"""Factors on the number of filters and on the number of blocks, by size."""


@keras.saving.register_keras_serializable(package="Hortus")
class EfficientNet(Backbone):
    """EfficientNet, with features of levels 2 to 5 and one endpoint above them, '6'.

    Args:
        model_id: size, a key of `SCALES`.
        input_specs: shape of the images, batch first.
        se_ratio: squeeze-excite width as a share of the block's input, 0 to 1; the paper's is 0.25,
            0 leaves it out.
        stochastic_depth_drop_rate: chance that an example skips the last block in training;
            proportionally less in earlier ones.
        padding: of strided convolutions: `same`, or `symmetric` for as much on both sides.
        se_inner_activation: of the squeeze-excite bottleneck; the paper's is `swish`.
        norm_act: makes normalisation and activations.
        kernel_initializer: of all convolutions.
        kernel_regularizer: of all convolutions that are not depthwise, or None.
        bias_regularizer: of the convolutions with a bias, or None.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        model_id: str,
        input_specs: keras.layers.InputSpec = IMAGES,
        se_ratio: float = 0.0,
        stochastic_depth_drop_rate: float = 0.0,
        padding: str = "same",
        se_inner_activation: str = "relu",
        norm_act: NormAct | None = None,
        kernel_initializer: Any = "VarianceScaling",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ):
        if model_id not in SCALES:
            raise ValueError(f"EfficientNet size must be one of {list(SCALES)}, got {model_id!r}")
        self.model_id = model_id
        self.input_specs = input_specs
        self.se_ratio = se_ratio
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        self.padding = padding
        self.se_inner_activation = se_inner_activation
        self._remember_layer_arguments(
            norm_act, kernel_initializer, kernel_regularizer, bias_regularizer
        )
        inputs = image_input(input_specs)
        endpoints = self._connect(inputs)
        levels = list(endpoints)[:-1]  # all but the last one, which is for classification
        self._finish(inputs, endpoints, levels, **kwargs)

    def _connect(self, x: Any) -> dict[str, Any]:
        width, depth = SCALES[self.model_id]
        repeats = [math.ceil(stage.repeats * depth) for stage in STAGES]
        endpoints = {}
        x = self._conv_norm_act(x, round_filters(32, width), 3, 2, name="stem")
        done = 0
        for number, (stage, count) in enumerate(zip(STAGES, repeats, strict=True), start=1):
            for index in range(count):
                done += 1
                x = InvertedBottleneckBlock(
                    x.shape[-1],
                    round_filters(stage.filters, width),
                    stage.expand_ratio,
                    strides=stage.strides if index == 0 else 1,
                    kernel_size=stage.kernel_size,
                    se_ratio=self.se_ratio,
                    se_inner_activation=self.se_inner_activation,
                    stochastic_depth_drop_rate=stochastic_depth_rate(
                        self.stochastic_depth_drop_rate, done, sum(repeats)
                    ),
                    name=f"stage{number}_block{index + 1}",
                    **self._layer_arguments(),
                )(x)
            if stage.level:
                endpoints[stage.level] = x
        endpoints["6"] = self._conv_norm_act(x, round_filters(1280, width), 1, 1, name="top")
        return endpoints


build_efficientnet = factory.register_backbone_builder("efficientnet")(builder_of(EfficientNet))
