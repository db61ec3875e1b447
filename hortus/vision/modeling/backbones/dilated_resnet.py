"""ResNet whose last levels dilate instead of striding, for segmentation (Chen et al. 2017)."""

import math
from typing import Any

import keras

from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones.backbone import IMAGES
from hortus.vision.modeling.backbones.builder import builder_of
from hortus.vision.modeling.backbones.resnet import BLOCKS, ResNetTrunk
from hortus.vision.modeling.layers.blocks.residual_block import BottleneckBlock
from hortus.vision.modeling.layers.regularization.stochastic_depth import stochastic_depth_rate

DEPTHS = (50, 101, 152, 200)
_FILTERS = (64, 128, 256, 512)


@keras.saving.register_keras_serializable(package="Hortus")
class DilatedResNet(ResNetTrunk):
    """ResNet that stays at `output_stride`; its features are those of level 2 up to that stride.

    Args:
        model_id: depth, one of `DEPTHS`.
        output_stride: input pixels per pixel of the last features: 4, 8, 16 or 32.
        input_specs: shape of the images, batch first.
        multigrid: dilation factors of the blocks of the last stage where it dilates, one per block;
            None for none.
        last_stage_repeats: how often the last stage is run; each time at twice the dilation.
        stem_type: `v0` one 7x7 convolution, `v1` three 3x3 ones (ResNet-D).
        resnetd_shortcut: average-pool before the convolution of a strided shortcut (ResNet-D).
        replace_stem_max_pool: a strided convolution instead of the max pooling (ResNet-RS).
        se_ratio: squeeze-excite width as a share of the block's output, 0 to 1; 0 leaves it out.
        stochastic_depth_drop_rate: chance that an example skips a block of the last stage in
            training; proportionally less in earlier ones.
        padding: of strided layers: `same`, or `symmetric` for as much on both sides.
        project_every_level: project the shortcut of each stage's first block, also where shapes
            stay the same.
        pool_unstrided_shortcut: `resnetd_shortcut` also averages where nothing is strided.
        norm_act: makes normalisation and activations.
        kernel_initializer: of all convolutions.
        kernel_regularizer: of all convolutions, or None.
        bias_regularizer: of the convolutions with a bias, or None.
        **kwargs: of `keras.Model`.
    """

    stem_v1_filters = (64, 64, 128)

    def __init__(
        self,
        model_id: int,
        output_stride: int,
        input_specs: keras.layers.InputSpec = IMAGES,
        multigrid: list[int] | None = None,
        last_stage_repeats: int = 1,
        **kwargs: Any,
    ):
        if model_id not in DEPTHS:
            raise ValueError(f"dilated ResNet depth must be one of {DEPTHS}, got {model_id}")
        if output_stride not in (4, 8, 16, 32):
            raise ValueError(f"output_stride must be 4, 8, 16 or 32, got {output_stride}")
        last_blocks = BLOCKS[model_id][1][-1]
        if multigrid is not None and len(multigrid) != last_blocks:
            raise ValueError(f"multigrid needs {last_blocks} factors, got {list(multigrid)}")
        self.output_stride = output_stride
        self.multigrid = multigrid
        self.last_stage_repeats = last_stage_repeats
        super().__init__(model_id, input_specs, **kwargs)

    def _endpoints(self, inputs: Any) -> dict[str, Any]:
        repeats = BLOCKS[self.model_id][1]
        stages = len(repeats) - 1 + self.last_stage_repeats
        last_strided_level = int(math.log2(self.output_stride))
        x = self._stem(inputs)
        endpoints = {}
        dilation = 1
        for stage in range(stages):
            # The last of the four is run again and again.
            kind = min(stage, len(repeats) - 1)
            level = stage + 2
            strides = 2 if 2 < level <= last_strided_level else 1
            dilations = [1] * repeats[kind]
            if level > last_strided_level:
                dilation *= 2
                last = kind == len(repeats) - 1
                grid = self.multigrid if self.multigrid and last else dilations
                dilations = [dilation * factor for factor in grid]
            x = self._group(
                x,
                BottleneckBlock,
                filters=_FILTERS[kind],
                repeats=repeats[kind],
                strides=strides,
                drop_rate=stochastic_depth_rate(self.stochastic_depth_drop_rate, level, stages + 1),
                dilations=dilations,
                name=f"stage{level}",
            )
            endpoints[str(min(level, last_strided_level))] = x
        return endpoints


build_dilated_resnet = factory.register_backbone_builder("dilated_resnet")(
    builder_of(DilatedResNet)
)
