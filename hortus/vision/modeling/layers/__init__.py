"""Layers and blocks that models are built from, one per module.

All of them can be had from here; a module is imported when one of its names is used:

    from hortus.vision.modeling import layers

    x = layers.BottleneckBlock(64, use_projection=True)(x)
"""

import importlib
from typing import Any

_MODULES = {
    "BatchNormalization": "batch_normalization",
    "Block": "block",
    "BottleneckBlock": "residual_block",
    "ClassToken": "position_embedding",
    "Configurable": "configurable",
    "Conv2D": "conv2d",
    "ConvNeXtBlock": "convnext_block",
    "ConvNormAct": "conv_norm_act",
    "DepthwiseScaleResampling": "scale_resampling",
    "DepthwiseSeparableConvBlock": "depthwise_separable_conv",
    "InvertedBottleneckBlock": "inverted_bottleneck",
    "LayerNormalization": "layer_normalization",
    "LayerScale": "layer_scale",
    "MultiHeadSelfAttention": "multi_head_attention",
    "MultiQueryAttention": "multi_query_attention",
    "MultiQueryAttentionBlock": "multi_query_attention",
    "MultilevelConv": "multilevel_conv",
    "MultilevelDetectionGenerator": "detection_generator",
    "MultilevelTower": "multilevel_tower",
    "NormAct": "norm_act",
    "PanopticFPNFusion": "panoptic_fpn_fusion",
    "PositionEmbedding": "position_embedding",
    "ResidualBlock": "residual_block",
    "ResidualInner": "reversible_block",
    "ResizeLike": "resize_like",
    "ReversibleBlock": "reversible_block",
    "ScaleResampling": "scale_resampling",
    "SpatialPyramidPooling": "spatial_pyramid_pooling",
    "SqueezeExcitation": "squeeze_excitation",
    "StochasticDepth": "stochastic_depth",
    "TransformerEncoderBlock": "transformer_block",
    "TuckerConvBlock": "tucker_conv",
    "UniversalInvertedBottleneckBlock": "universal_inverted_bottleneck",
    "UpsampleLike": "upsample_like",
    "make_divisible": "round_filters",
    "register_activation": "activations",
    "round_filters": "round_filters",
    "stochastic_depth_rate": "stochastic_depth",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
