"""RevNet (Gomez et al. 2017): a ResNet whose activations can be computed backwards.

Training keeps the activations like that of any network: the weights and the results are RevNet's,
the memory is that of a ResNet.
"""

from typing import Any

import keras

from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones.backbone import IMAGES, Backbone, image_input
from hortus.vision.modeling.backbones.builder import builder_of
from hortus.vision.modeling.layers.blocks.reversible_block import ReversibleBlock
from hortus.vision.modeling.layers.normalization.norm_act import NormAct

BLOCKS = {
    38: (False, (16, 32, 56), (3, 3, 3)),
    56: (True, (64, 128, 256, 416), (2, 2, 3, 2)),
    104: (True, (64, 128, 256, 416), (2, 2, 11, 2)),
}
"""Whether blocks are bottlenecks, and their filters and repeats from level 2 on, by depth."""

_BLOCK_EPSILON = 1e-3
"""Of the normalisation inside of blocks, whatever that of the stem is: RevNets were trained so."""


@keras.saving.register_keras_serializable(package="Hortus")
class RevNet(Backbone):
    """RevNet with features of levels 2 to 4 or, from depth 56 on, to 5.

    Args:
        model_id: depth, a key of `BLOCKS`.
        input_specs: shape of the images, batch first.
        norm_act: makes normalisation and activations. Its epsilon is that of the stem; blocks have
            1e-3, with which RevNets were trained.
        kernel_initializer: of all convolutions.
        kernel_regularizer: of all convolutions, or None.
        bias_regularizer: kept for symmetry; no convolution has a bias.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        model_id: int = 56,
        input_specs: keras.layers.InputSpec = IMAGES,
        norm_act: NormAct | None = None,
        kernel_initializer: Any = "VarianceScaling",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ):
        if model_id not in BLOCKS:
            raise ValueError(f"RevNet depth must be one of {list(BLOCKS)}, got {model_id}")
        self.model_id = model_id
        self.input_specs = input_specs
        self._remember_layer_arguments(
            norm_act, kernel_initializer, kernel_regularizer, bias_regularizer
        )
        inputs = image_input(input_specs)
        self._finish(inputs, self._endpoints(inputs), **kwargs)

    def _endpoints(self, inputs: Any) -> dict[str, Any]:
        use_bottleneck, filters, repeats = BLOCKS[self.model_id]
        x = self._conv_norm_act(inputs, 2 * filters[0], 7, 2, name="stem")
        x = keras.layers.MaxPooling2D(3, strides=2, padding="same", name="stem_pool")(x)
        arguments = self._layer_arguments()
        arguments["norm_act"] = self.norm_act.replace(norm_epsilon=_BLOCK_EPSILON)
        endpoints = {}
        for level, (width, count) in enumerate(zip(filters, repeats, strict=True), 2):
            for index in range(count):
                shrinks = level > 2 and index == 0
                x = ReversibleBlock(
                    width,
                    strides=2 if shrinks else 1,
                    use_bottleneck=use_bottleneck,
                    norm_first=shrinks,
                    name=f"level{level}_block{index + 1}",
                    **arguments,
                )(x)
            endpoints[str(level)] = x
        return endpoints


build_revnet = factory.register_backbone_builder("revnet")(builder_of(RevNet))
