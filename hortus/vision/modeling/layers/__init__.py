"""Layers and blocks that models are built from, one per module.

All of them can be had from here; a module is imported when one of its names is used:

    from hortus.vision.modeling import layers

    x = layers.BottleneckBlock(64, use_projection=True)(x)
"""

import importlib
from typing import Any

_MODULES = {
    "BatchNormalization": "normalization.batch_normalization",
    "Block": "blocks.block",
    "BottleneckBlock": "blocks.residual_block",
    "ClassToken": "attention.position_embedding",
    "Configurable": "configurable",
    "Conv2D": "convolution.conv2d",
    "ConvNeXtBlock": "blocks.convnext_block",
    "ConvNormAct": "convolution.conv_norm_act",
    "DepthwiseScaleResampling": "resampling.scale_resampling",
    "DepthwiseSeparableConvBlock": "convolution.depthwise_separable_conv",
    "DetectionGenerator": "detection.region_detection_generator",
    "InvertedBottleneckBlock": "blocks.inverted_bottleneck",
    "LayerNormalization": "normalization.layer_normalization",
    "LayerScale": "normalization.layer_scale",
    "MaskSampler": "detection.mask_sampler",
    "MultiHeadSelfAttention": "attention.multi_head_attention",
    "MultiQueryAttention": "attention.multi_query_attention",
    "MultiQueryAttentionBlock": "attention.multi_query_attention",
    "MultilevelConv": "convolution.multilevel_conv",
    "MultilevelDetectionGenerator": "detection.detection_generator",
    "MultilevelROIAligner": "detection.roi_aligner",
    "MultilevelROIGenerator": "detection.roi_generator",
    "MultilevelTower": "convolution.multilevel_tower",
    "NormAct": "normalization.norm_act",
    "PanopticFPNFusion": "resampling.panoptic_fpn_fusion",
    "PositionEmbedding": "attention.position_embedding",
    "ROISampler": "detection.roi_sampler",
    "ResidualBlock": "blocks.residual_block",
    "ResidualInner": "blocks.reversible_block",
    "ResizeLike": "resampling.resize_like",
    "ReversibleBlock": "blocks.reversible_block",
    "ScaleResampling": "resampling.scale_resampling",
    "SpatialPyramidPooling": "resampling.spatial_pyramid_pooling",
    "SqueezeExcitation": "blocks.squeeze_excitation",
    "StochasticDepth": "regularization.stochastic_depth",
    "TransformerEncoderBlock": "attention.transformer_block",
    "TuckerConvBlock": "convolution.tucker_conv",
    "UniversalInvertedBottleneckBlock": "blocks.universal_inverted_bottleneck",
    "UpsampleLike": "resampling.upsample_like",
    "make_divisible": "round_filters",
    "register_activation": "activations",
    "round_filters": "round_filters",
    "stochastic_depth_rate": "regularization.stochastic_depth",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
