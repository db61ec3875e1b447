"""ResNet whose coarse features are upsampled again through ConvNeXt blocks, as in a U-Net."""

from collections.abc import Sequence
from typing import Any

import keras

from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones.backbone import IMAGES
from hortus.vision.modeling.backbones.builder import builder_of
from hortus.vision.modeling.backbones.resnet import ResNet
from hortus.vision.modeling.layers.blocks.block import fresh_initializer
from hortus.vision.modeling.layers.blocks.convnext_block import ConvNeXtBlock
from hortus.vision.modeling.layers.regularization.stochastic_depth import stochastic_depth_rate
from hortus.vision.modeling.layers.resampling.upsample_like import UpsampleLike


@keras.saving.register_keras_serializable(package="Hortus")
class ResNetUNet(ResNet):
    """ResNet with features of levels 2 to 5, the coarsest of which went up again.

    From level 5 on, the features of a level and those of the next coarser one, upsampled, are added
    up and go through ConvNeXt blocks. Levels for which there are no blocks keep those of ResNet.

    Args:
        model_id: depth, a key of `resnet.BLOCKS`.
        input_specs: shape of the images, batch first.
        upsample_repeats: ConvNeXt blocks per level, from level 5 on; four levels at most.
        upsample_filters: their filters, per level.
        upsample_kernel_sizes: side of their depthwise kernels, per level.
        depth_multiplier: factor on the number of filters of ResNet.
        stem_type: `v0` one 7x7 convolution, `v1` three 3x3 ones (ResNet-D).
        resnetd_shortcut: average-pool before the convolution of a shortcut (ResNet-D); in
            bottleneck blocks only, so from depth 50 on.
        replace_stem_max_pool: a strided convolution instead of the max pooling (ResNet-RS).
        se_ratio: squeeze-excite width of ResNet's blocks as a share of their output, 0 to 1; 0
            leaves it out.
        stochastic_depth_drop_rate: chance that an example skips a block of the last level in
            training; proportionally less in earlier ones.
        scale_stem: let `depth_multiplier` scale the stem too.
        norm_act: makes normalisation and activations.
        kernel_initializer: of the convolutions outside ConvNeXt blocks.
        kernel_regularizer: of the convolutions outside ConvNeXt blocks, or None.
        bias_regularizer: of those with a bias, or None.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        model_id: int,
        input_specs: keras.layers.InputSpec = IMAGES,
        upsample_repeats: Sequence[int] = (18, 1, 1),
        upsample_filters: Sequence[int] = (384, 384, 384),
        upsample_kernel_sizes: Sequence[int] = (7, 7, 7),
        **kwargs: Any,
    ):
        lengths = {len(upsample_repeats), len(upsample_filters), len(upsample_kernel_sizes)}
        if len(lengths) > 1 or not lengths <= {1, 2, 3, 4}:
            raise ValueError(
                "upsample_repeats, upsample_filters and upsample_kernel_sizes must be equally "
                f"long, 1 to 4 levels, got {list(upsample_repeats)}, {list(upsample_filters)} "
                f"and {list(upsample_kernel_sizes)}"
            )
        self.upsample_repeats = list(upsample_repeats)
        self.upsample_filters = list(upsample_filters)
        self.upsample_kernel_sizes = list(upsample_kernel_sizes)
        super().__init__(model_id, input_specs, **kwargs)

    def _drop_rate(self, part: int) -> float:
        # The way up follows levels 2 to 5.
        parts = 5 + len(self.upsample_repeats)
        return stochastic_depth_rate(self.stochastic_depth_drop_rate, part, parts)

    def _endpoints(self, inputs: Any) -> dict[str, Any]:
        endpoints = super()._endpoints(inputs)
        x = None
        for index, repeats in enumerate(self.upsample_repeats):
            level = str(5 - index)
            filters = self.upsample_filters[index]
            name = f"up{level}"
            skip = self._conv_norm(endpoints[level], filters, name=f"{name}_skip")
            if x is None:
                x = skip
            else:
                x = self._conv_norm(x, filters, name=name)
                x = UpsampleLike(2, name=f"{name}_upsample")(x, skip)
                x = keras.layers.Add(name=f"{name}_sum")([x, skip])
            for block in range(repeats):
                x = ConvNeXtBlock(
                    filters,
                    self.upsample_kernel_sizes[index],
                    stochastic_depth_drop_rate=self._drop_rate(6 + index),
                    name=f"{name}_block{block + 1}",
                )(x)
            x = self.norm_act.activation(name=f"{name}_activation")(x)
            endpoints[level] = x
        return endpoints

    def _conv_norm(self, x: Any, filters: int, name: str) -> Any:
        x = keras.layers.Conv2D(
            filters,
            1,
            use_bias=False,
            kernel_initializer=fresh_initializer(self.kernel_initializer),
            kernel_regularizer=self.kernel_regularizer,
            name=f"{name}_conv",
        )(x)
        return keras.layers.LayerNormalization(epsilon=1e-6, name=f"{name}_norm")(x)


build_resnet_unet = factory.register_backbone_builder("resnet_unet")(builder_of(ResNetUNet))
