"""Layers and blocks that models are built from, one per module.

All of them can be had from here; a module is imported when one of its names is used:

    from hortus.vision.modeling import layers

    x = layers.BottleneckBlock(64, use_projection=True)(x)
"""

import typing

from hortus import lazy

if typing.TYPE_CHECKING:
    from hortus.vision.modeling.layers.activations import register_activation as register_activation
    from hortus.vision.modeling.layers.attention.multi_head_attention import (
        MultiHeadSelfAttention as MultiHeadSelfAttention,
    )
    from hortus.vision.modeling.layers.attention.multi_query_attention import (
        MultiQueryAttention as MultiQueryAttention,
    )
    from hortus.vision.modeling.layers.attention.multi_query_attention import (
        MultiQueryAttentionBlock as MultiQueryAttentionBlock,
    )
    from hortus.vision.modeling.layers.attention.position_embedding import ClassToken as ClassToken
    from hortus.vision.modeling.layers.attention.position_embedding import (
        PositionEmbedding as PositionEmbedding,
    )
    from hortus.vision.modeling.layers.attention.transformer_block import (
        TransformerEncoderBlock as TransformerEncoderBlock,
    )
    from hortus.vision.modeling.layers.blocks.block import Block as Block
    from hortus.vision.modeling.layers.blocks.convnext_block import ConvNeXtBlock as ConvNeXtBlock
    from hortus.vision.modeling.layers.blocks.inverted_bottleneck import (
        InvertedBottleneckBlock as InvertedBottleneckBlock,
    )
    from hortus.vision.modeling.layers.blocks.residual_block import (
        BottleneckBlock as BottleneckBlock,
    )
    from hortus.vision.modeling.layers.blocks.residual_block import ResidualBlock as ResidualBlock
    from hortus.vision.modeling.layers.blocks.reversible_block import ResidualInner as ResidualInner
    from hortus.vision.modeling.layers.blocks.reversible_block import (
        ReversibleBlock as ReversibleBlock,
    )
    from hortus.vision.modeling.layers.blocks.squeeze_excitation import (
        SqueezeExcitation as SqueezeExcitation,
    )
    from hortus.vision.modeling.layers.blocks.universal_inverted_bottleneck import (
        UniversalInvertedBottleneckBlock as UniversalInvertedBottleneckBlock,
    )
    from hortus.vision.modeling.layers.configurable import Configurable as Configurable
    from hortus.vision.modeling.layers.convolution.conv2d import Conv2D as Conv2D
    from hortus.vision.modeling.layers.convolution.conv_norm_act import ConvNormAct as ConvNormAct
    from hortus.vision.modeling.layers.convolution.depthwise_separable_conv import (
        DepthwiseSeparableConvBlock as DepthwiseSeparableConvBlock,
    )
    from hortus.vision.modeling.layers.convolution.multilevel_conv import (
        MultilevelConv as MultilevelConv,
    )
    from hortus.vision.modeling.layers.convolution.multilevel_tower import (
        MultilevelTower as MultilevelTower,
    )
    from hortus.vision.modeling.layers.convolution.tucker_conv import (
        TuckerConvBlock as TuckerConvBlock,
    )
    from hortus.vision.modeling.layers.detection.detection_generator import (
        MultilevelDetectionGenerator as MultilevelDetectionGenerator,
    )
    from hortus.vision.modeling.layers.detection.mask_sampler import MaskSampler as MaskSampler
    from hortus.vision.modeling.layers.detection.region_detection_generator import (
        DetectionGenerator as DetectionGenerator,
    )
    from hortus.vision.modeling.layers.detection.roi_aligner import (
        MultilevelROIAligner as MultilevelROIAligner,
    )
    from hortus.vision.modeling.layers.detection.roi_generator import (
        MultilevelROIGenerator as MultilevelROIGenerator,
    )
    from hortus.vision.modeling.layers.detection.roi_sampler import ROISampler as ROISampler
    from hortus.vision.modeling.layers.normalization.batch_normalization import (
        BatchNormalization as BatchNormalization,
    )
    from hortus.vision.modeling.layers.normalization.layer_normalization import (
        LayerNormalization as LayerNormalization,
    )
    from hortus.vision.modeling.layers.normalization.layer_scale import LayerScale as LayerScale
    from hortus.vision.modeling.layers.normalization.norm_act import NormAct as NormAct
    from hortus.vision.modeling.layers.regularization.stochastic_depth import (
        StochasticDepth as StochasticDepth,
    )
    from hortus.vision.modeling.layers.regularization.stochastic_depth import (
        stochastic_depth_rate as stochastic_depth_rate,
    )
    from hortus.vision.modeling.layers.resampling.panoptic_fpn_fusion import (
        PanopticFPNFusion as PanopticFPNFusion,
    )
    from hortus.vision.modeling.layers.resampling.resize_like import ResizeLike as ResizeLike
    from hortus.vision.modeling.layers.resampling.scale_resampling import (
        DepthwiseScaleResampling as DepthwiseScaleResampling,
    )
    from hortus.vision.modeling.layers.resampling.scale_resampling import (
        ScaleResampling as ScaleResampling,
    )
    from hortus.vision.modeling.layers.resampling.spatial_pyramid_pooling import (
        SpatialPyramidPooling as SpatialPyramidPooling,
    )
    from hortus.vision.modeling.layers.resampling.upsample_like import UpsampleLike as UpsampleLike
    from hortus.vision.modeling.layers.round_filters import make_divisible as make_divisible
    from hortus.vision.modeling.layers.round_filters import round_filters as round_filters

__getattr__, __dir__, __all__ = lazy.attach(__name__)
