"""ResNet (He et al. 2015), with the options of ResNet-D and ResNet-RS (Bello et al. 2021)."""

from typing import Any

import keras

from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones.backbone import IMAGES, Backbone, image_input
from hortus.vision.modeling.backbones.builder import builder_of
from hortus.vision.modeling.layers.blocks.residual_block import BottleneckBlock, ResidualBlock
from hortus.vision.modeling.layers.convolution.symmetric import SymmetricMaxPooling2D
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.layers.regularization.stochastic_depth import stochastic_depth_rate

BLOCKS = {
    10: (ResidualBlock, (1, 1, 1, 1)),
    18: (ResidualBlock, (2, 2, 2, 2)),
    26: (ResidualBlock, (3, 3, 3, 3)),
    34: (ResidualBlock, (3, 4, 6, 3)),
    50: (BottleneckBlock, (3, 4, 6, 3)),
    101: (BottleneckBlock, (3, 4, 23, 3)),
    152: (BottleneckBlock, (3, 8, 36, 3)),
    200: (BottleneckBlock, (3, 24, 36, 3)),
    270: (BottleneckBlock, (4, 29, 53, 4)),
    350: (BottleneckBlock, (4, 36, 72, 4)),
    420: (BottleneckBlock, (4, 44, 87, 4)),
}
"""Block and how often it is repeated at levels 2 to 5, by depth."""

_FILTERS = (64, 128, 256, 512)


class ResNetTrunk(Backbone):
    """What the ResNets have in common: the arguments, the stem and a group of blocks."""

    stem_v1_filters = (32, 32, 64)

    def __init__(
        self,
        model_id: int,
        input_specs: keras.layers.InputSpec = IMAGES,
        stem_type: str = "v0",
        resnetd_shortcut: bool = False,
        replace_stem_max_pool: bool = False,
        se_ratio: float = 0.0,
        stochastic_depth_drop_rate: float = 0.0,
        padding: str = "same",
        project_every_level: bool = True,
        pool_unstrided_shortcut: bool = True,
        norm_act: NormAct | None = None,
        kernel_initializer: Any = "VarianceScaling",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ):
        if stem_type not in ("v0", "v1"):
            raise ValueError(f"stem_type must be 'v0' or 'v1', got {stem_type!r}")
        self.model_id = model_id
        self.input_specs = input_specs
        self.stem_type = stem_type
        self.resnetd_shortcut = resnetd_shortcut
        self.replace_stem_max_pool = replace_stem_max_pool
        self.se_ratio = se_ratio
        self.stochastic_depth_drop_rate = stochastic_depth_drop_rate
        self.padding = padding
        self.project_every_level = project_every_level
        self.pool_unstrided_shortcut = pool_unstrided_shortcut
        self._remember_layer_arguments(
            norm_act, kernel_initializer, kernel_regularizer, bias_regularizer
        )
        inputs = image_input(input_specs)
        self._finish(inputs, self._endpoints(inputs), **kwargs)

    def _endpoints(self, inputs: Any) -> dict[str, Any]:
        raise NotImplementedError

    def _stem(self, x: Any, multiplier: float = 1.0, pool_multiplier: float = 1.0) -> Any:
        """Images to features of level 2."""
        if self.stem_type == "v0":
            x = self._conv_norm_act(x, int(64 * multiplier), 7, 2, name="stem")
        else:
            for index, filters in enumerate(self.stem_v1_filters):
                strides = 2 if index == 0 else 1
                width = int(filters * multiplier)
                x = self._conv_norm_act(x, width, 3, strides, name=f"stem{index + 1}")
        if self.replace_stem_max_pool:
            return self._conv_norm_act(x, int(64 * pool_multiplier), 3, 2, name="stem_pool")
        pool = SymmetricMaxPooling2D if self.padding == "symmetric" else keras.layers.MaxPooling2D
        return pool(3, strides=2, padding="same", name="stem_pool")(x)

    def _group(
        self,
        x: Any,
        block: type[ResidualBlock] | type[BottleneckBlock],
        filters: int,
        repeats: int,
        strides: int,
        drop_rate: float,
        name: str,
        dilations: list[int] | None = None,
    ) -> Any:
        """Blocks of one size; the first one strides and projects."""
        pools = self.resnetd_shortcut and (strides > 1 or self.pool_unstrided_shortcut)
        options: dict[str, Any] = {"resnetd_shortcut": pools} if block is BottleneckBlock else {}
        keeps_shape = strides == 1 and x.shape[-1] == filters * block.expansion
        projects = self.project_every_level or not keeps_shape
        for index in range(repeats):
            first = index == 0
            x = block(
                filters,
                strides=strides if first else 1,
                dilation_rate=dilations[index] if dilations else 1,
                use_projection=first and projects,
                se_ratio=self.se_ratio,
                stochastic_depth_drop_rate=drop_rate,
                name=f"{name}_block{index + 1}",
                **options,
                **self._layer_arguments(),
            )(x)
        return x


@keras.saving.register_keras_serializable(package="Hortus")
class ResNet(ResNetTrunk):
    """ResNet with features of levels 2 to 5.

    Args:
        model_id: depth, a key of `BLOCKS`.
        input_specs: shape of the images, batch first.
        depth_multiplier: factor on the number of filters.
        stem_type: `v0` one 7x7 convolution, `v1` three 3x3 ones (ResNet-D).
        resnetd_shortcut: average-pool before the convolution of a shortcut (ResNet-D); in
            bottleneck blocks only, so from depth 50 on.
        replace_stem_max_pool: a strided convolution instead of the max pooling (ResNet-RS).
        se_ratio: squeeze-excite width as a share of the block's output, 0 to 1; 0 leaves it out.
        stochastic_depth_drop_rate: chance that an example skips a block of the last level in
            training; proportionally less at finer levels.
        padding: of strided layers: `same`, or `symmetric` for as much on both sides.
        project_every_level: project the shortcut of each level's first block, also where shapes
            stay the same, as at level 2 of depths 18 and 34.
        pool_unstrided_shortcut: `resnetd_shortcut` also averages where nothing is strided.
        scale_stem: let `depth_multiplier` scale the stem too.
        norm_act: makes normalisation and activations.
        kernel_initializer: of all convolutions.
        kernel_regularizer: of all convolutions, or None.
        bias_regularizer: of the convolutions with a bias, or None.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        model_id: int,
        input_specs: keras.layers.InputSpec = IMAGES,
        depth_multiplier: float = 1.0,
        scale_stem: bool = True,
        **kwargs: Any,
    ):
        if model_id not in BLOCKS:
            raise ValueError(f"ResNet depth must be one of {list(BLOCKS)}, got {model_id}")
        self.depth_multiplier = depth_multiplier
        self.scale_stem = scale_stem
        super().__init__(model_id, input_specs, **kwargs)

    def _drop_rate(self, level: int) -> float:
        return stochastic_depth_rate(self.stochastic_depth_drop_rate, level, 5)

    def _endpoints(self, inputs: Any) -> dict[str, Any]:
        block, repeats = BLOCKS[self.model_id]
        stem_multiplier = self.depth_multiplier if self.scale_stem else 1.0
        x = self._stem(inputs, stem_multiplier, pool_multiplier=self.depth_multiplier)
        endpoints = {}
        for level in range(2, 6):
            x = self._group(
                x,
                block,
                filters=int(_FILTERS[level - 2] * self.depth_multiplier),
                repeats=repeats[level - 2],
                strides=1 if level == 2 else 2,
                drop_rate=self._drop_rate(level),
                name=f"level{level}",
            )
            endpoints[str(level)] = x
        return endpoints


build_resnet = factory.register_backbone_builder("resnet")(builder_of(ResNet))
