"""What our blocks' parts are called in the Model Garden's blocks."""

from hortus.vision.weights.rules import Rules

_EXCITATION = {
    "squeeze_excitation/reduce": "_squeeze_excitation/_se_reduce",
    "squeeze_excitation/expand": "_squeeze_excitation/_se_expand",
}
_RESIDUAL = {
    "shortcut_conv": "_shortcut",
    "shortcut_norm": "_norm0",
    "conv{i}": "_conv{i}",
    "norm{i}": "_norm{i}",
    **_EXCITATION,
}
_REVERSIBLE = {f"{half}/convs/{{i}}": f"_{half}/_conv2d_{{i+1}}" for half in "fg"}

BLOCKS: dict[str, tuple[Rules, ...]] = {
    "ResidualBlock": (Rules(_RESIDUAL),),
    "BottleneckBlock": (
        Rules(_RESIDUAL),
        # ResNet-D pools first, and there the shortcut's convolution is the second of its parts.
        Rules({**_RESIDUAL, "shortcut_conv": "_shortcut1"}),
    ),
    "InvertedBottleneckBlock": (
        Rules(
            {
                "expand": "_conv0",
                "expand_norm": "_norm0",
                "depthwise": "_conv1",
                "depthwise_norm": "_norm1",
                "project": "_conv2",
                "project_norm": "_norm2",
                **_EXCITATION,
            }
        ),
    ),
    "ConvNormAct": (Rules({"conv": "_conv0", "norm": "_norm0"}),),
    "DepthwiseSeparableConvBlock": (
        Rules(
            {
                "depthwise": "_dwconv0",
                "depthwise_norm": "_norm0",
                "pointwise": "_conv1",
                "pointwise_norm": "_norm1",
            }
        ),
    ),
    "UniversalInvertedBottleneckBlock": (
        Rules(
            {
                "start": "_start_dw_conv",
                "start_norm": "_start_dw_norm",
                "expand": "_expand_conv",
                "expand_norm": "_expand_norm",
                "middle": "_middle_dw_conv",
                "middle_norm": "_middle_dw_norm",
                "project": "_proj_conv",
                "project_norm": "_proj_norm",
                "layer_scale/scale": "_layer_scale/_gamma",
            }
        ),
    ),
    "MultiQueryAttentionBlock": (
        Rules(
            {
                "norm": "_input_norm",
                "layer_scale/scale": "_layer_scale/_gamma",
                **{
                    f"attention/{name}_kernel": f"_multi_query_attention/{name}"
                    for name in ("query", "key", "value", "output")
                },
                "attention/query": "_multi_query_attention/_query_proj",
                "attention/output_conv": "_multi_query_attention/_output_proj",
                **{
                    f"attention/{name}_path/{index}": f"_multi_query_attention/_{name}_{part}"
                    for name in ("key", "value")
                    for index, part in enumerate(("dw_conv", "dw_norm", "proj"))
                },
            }
        ),
    ),
    "TuckerConvBlock": (
        Rules(
            {
                "compress": "_conv0",
                "compress_norm": "_norm0",
                "filter": "_conv1",
                "filter_norm": "_norm1",
                "expand": "_conv2",
                "expand_norm": "_norm2",
            }
        ),
    ),
    "ReversibleBlock": (
        # Normalisations are counted from 0 where one comes first, otherwise from 1.
        Rules({**_REVERSIBLE, **{f"{h}/norms/{{i}}": f"_{h}/_batch_norm_{{i}}" for h in "fg"}}),
        Rules({**_REVERSIBLE, **{f"{h}/norms/{{i}}": f"_{h}/_batch_norm_{{i+1}}" for h in "fg"}}),
    ),
}
"""By our class: the names of its parts to theirs. Of several tables the one that fits is taken."""

KINDS = {
    "Conv2D": "conv2d",
    "SeparableConv2D": "separable_conv2d",
    "DepthwiseConv2D": "depthwise_conv2d",
    "BatchNormalization": "batch_normalization",
    "Dense": "dense",
    "ResidualBlock": "residual_block",
    "BottleneckBlock": "bottleneck_block",
    "InvertedBottleneckBlock": "inverted_bottleneck_block",
    "ConvNormAct": "conv2dbn_block",
    "DepthwiseSeparableConvBlock": "depthwise_separable_conv_block",
    "UniversalInvertedBottleneckBlock": "universal_inverted_bottleneck_block",
    "MultiQueryAttentionBlock": "multi_head_self_attention_block",
    "TuckerConvBlock": "tucker_conv_block",
    "ReversibleBlock": "reversible_layer",
}
"""By our class: what its like is called there, where layers are counted by kind."""
