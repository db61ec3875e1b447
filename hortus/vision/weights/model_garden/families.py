"""Which of our layers is which of the Model Garden's, for every module, as data.

A module there is either Functional, and then its layers are told by their kind and by the order in
which those of a kind were made (`Counted`), or it names its parts (`Named`).
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Union

from hortus.vision.weights.rules import Numbers, Rules


@dataclasses.dataclass(frozen=True)
class Part:
    """Layers of ours, and what of each of them is a layer there.

    Attributes:
        ours: pattern of the names of our layers; their numbers give the order.
        layers: what of ours is a layer there, in the order in which they were made there: "" for
            the whole, `x/*` for the elements of a list, one layer each. What a layer of ours does
            not have is left out.
    """

    ours: str
    layers: tuple[str, ...] = ("",)


@dataclasses.dataclass(frozen=True)
class Counted:
    """A Functional model: layers of a kind are counted over all parts, in their order here."""

    parts: tuple[Part, ...]


@dataclasses.dataclass(frozen=True)
class Named:
    """A module whose parts have names: rules from our paths to theirs.

    Attributes:
        rules: alternatives; the first under which everything is found counts.
        numbers: what the rules need to know of a module of ours.
    """

    rules: tuple[Rules, ...]
    numbers: Callable[[Any], Numbers] = lambda module: {}


Family = Union[Counted, Named]

_CONV_NORM = ("conv", "norm")
_STEM = (Part("stem", _CONV_NORM), Part("stem{i}", _CONV_NORM), Part("stem_pool", _CONV_NORM))
_RESAMPLE = ("reduce", "stride", "strides/*", "expand")
_RESAMPLE_NORMS = ("reduce_norm", "stride_norm", "stride_norms/*", "expand_norm")
_SCALE_PERMUTED = (
    Part("stem", _CONV_NORM),
    Part("stem_block{i}"),
    Part("stem_block{i}_{j}"),
    # By the block where they end; those that begin in the stem come first.
    Part("block{i}_from_{j:word}", _RESAMPLE + _RESAMPLE_NORMS),
    Part("block{i}"),
    Part("block{i}_{j}"),
    Part("level{i}", _CONV_NORM),
)

_ATTENTION = "@encoder/_encoder_layers/{i-1}/_attention_layer/"
_TRANSFORMER = {
    "layers/patches": "@conv2d",
    "layers/class_token-0/token": "@cls/cls",
    "layers/position_embedding-0/embedding": "@encoder/_pos_embed/pos_embedding",
    "layers/norm": "@encoder/_norm",
    "layers/pre_logits": "@pre_logits",
    **{
        f"layers/block{{i}}/attention/{name}_{leaf}": f"{_ATTENTION}_{name}_dense/{leaf}"
        for name in ("query", "key", "value", "output")
        for leaf in ("kernel", "bias")
    },
    **{
        f"layers/block{{i}}/{ours}": f"@encoder/_encoder_layers/{{i-1}}/{theirs}"
        for ours, theirs in {
            "attention_norm": "_attention_layer_norm",
            "mlp_hidden": "_intermediate_dense",
            "mlp_output": "_output_dense",
            "mlp_norm": "_output_layer_norm",
            "attention_rest/0/scale": "_layer_scale_attn/layerscale_gamma",
            "mlp_rest/0/scale": "_layer_scale_mlp/layerscale_gamma",
        }.items()
    },
}

_PYRAMID = {
    "layers/lateral{i}": "@lateral_{i}",
    "layers/output{i}": "@post_hoc_{i}",
    "layers/coarser{i}": "@coarser_{i}",
    "layers/norm{i}": "@norm_{i}",
}
_SEARCHED_PYRAMID = (
    Part("lateral{i}"),
    Part("lateral_norm{i}"),
    Part("cell{i}_merge{j}", ("resample_convs/*", "conv", "resample_norms/*", "norm")),
)


def _pooling(
    layer: str, pool: str, first: int, projection: str = "projection", depthwise: bool = False
) -> Rules:
    """Atrous pooling: there a branch is a list of layers.

    Args:
        layer: what comes before the number of a layer in a branch.
        pool: the same in the branch that pools.
        first: number of the convolution in that branch.
        projection: the list of layers that joins the branches.
        depthwise: the dilated branches begin with a depthwise convolution.
    """
    branch, own = "aspp/aspp_layers", 1 if depthwise else 0
    pyramid = {
        "plain": f"{branch}/0/{layer}0",
        "plain_norm": f"{branch}/0/{layer}1",
        "depthwise/{i}": f"{branch}/{{i+1}}/{layer}0",
        "dilated/{i}": f"{branch}/{{i+1}}/{layer}{own}",
        "dilated_norms/{i}": f"{branch}/{{i+1}}/{layer}{own + 1}",
        "pool_conv": f"{branch}/{{pool}}/{pool}{first}",
        "pool_norm": f"{branch}/{{pool}}/{pool}{first + 1}",
        "project": f"aspp/{projection}/{layer}0",
        "project_norm": f"aspp/{projection}/{layer}1",
    }
    return Rules({f"layers/pyramid/{ours}": theirs for ours, theirs in pyramid.items()})


_UNIT = "layer_with_weights-"
_POOLINGS = tuple(
    rules
    for depthwise in (False, True)
    for rules in (
        _pooling(_UNIT, f"{_UNIT}0/{_UNIT}", 0, depthwise=depthwise),
        # `spp_layer_version: v2`
        _pooling("", "", 2, "_projection", depthwise=depthwise),
    )
)


def _prediction(ours: str, theirs: str) -> dict[str, str]:
    """A convolution of RetinaNet's head that all levels share, or one for each of them."""
    return {
        f"{ours}/convs/shared": theirs,
        f"{ours}/convs/level{{l}}": f"{theirs}/{{l-min}}",
    }


def _tower(ours: str, theirs: str) -> dict[str, str]:
    """A tower of RetinaNet's head: there the normalisations are listed by level first."""
    which, _, attribute = theirs.partition("/")
    convs, norms = f"_{which}_convs", f"_{which}_norms"
    if attribute:
        convs, norms = f"{convs}/{attribute}", f"{norms}/{attribute}"
    return {
        f"towers/{ours}/convs/{{i}}/convs/shared": f"{convs}/{{i}}",
        f"towers/{ours}/convs/{{i}}/convs/level{{l}}": f"{convs}/{{l-min}}/{{i}}",
        f"towers/{ours}/norms/norm{{i}}_level{{l}}": f"{norms}/{{l-min}}/{{i-1}}",
    }


_RETINANET_HEAD = {
    **_prediction("scores", "_classifier"),
    **_prediction("boxes", "_box_regressor"),
    **_prediction("attributes/{a:word}", "_att_predictors/{a}"),
    **_tower("class", "cls"),
    **_tower("box", "box"),
    **_tower("attribute_{a:word}", "att/{a}"),
}
# There, what predicts attributes is shared by all levels even where all else is not.
_ATTRIBUTES_SHARED = {
    **_RETINANET_HEAD,
    "attributes/{a:word}/convs/level{l}": "_att_predictors/{a}",
    "towers/attribute_{a:word}/convs/{i}/convs/level{l}": "_att_convs/{a}/{i}",
}
_CONVOLUTIONS = {"convs/{i}": "_convs/{i}"}
_SEGMENTATION_HEAD = {
    **_CONVOLUTIONS,
    "norms/{i}": "_norms/{i}",
    "low_level_conv": "_dlv3p_conv",
    "low_level_norm": "_dlv3p_norm",
    "logits": "_classifier",
}
_MASK_SCORING = {
    **_CONVOLUTIONS,
    "conv_norms/{i}": "_conv_norms/{i}",
    "fcs/{i}": "_fcs/{i}",
    "fc_norms/{i}": "_fc_norms/{i}",
    "scores": "_classifier",
}

FAMILIES: dict[str, Family] = {
    "ResNet": Counted((*_STEM, Part("level{i}_block{j}"))),
    "DilatedResNet": Counted((*_STEM, Part("stage{i}_block{j}"))),
    "RevNet": Counted((*_STEM, Part("level{i}_block{j}"))),
    "EfficientNet": Counted(
        (Part("stem", _CONV_NORM), Part("stage{i}_block{j}"), Part("top", _CONV_NORM))
    ),
    "MobileNet": Counted((Part("block{i}"),)),
    "MobileDet": Counted((Part("block{i}"),)),
    "SpineNet": Counted(_SCALE_PERMUTED),
    "SpineNetMobile": Counted(_SCALE_PERMUTED),
    "VisionTransformer": Named((Rules(_TRANSFORMER),)),
    "FPN": Named((Rules(_PYRAMID),)),
    "NASFPN": Counted(_SEARCHED_PYRAMID),
    "ASPP": Named(_POOLINGS, lambda module: {"pool": len(module.dilation_rates) + 1}),
    "RetinaNetHead": Named(
        (Rules(_RETINANET_HEAD), Rules(_ATTRIBUTES_SHARED)),
        lambda module: {"min": module.min_level},
    ),
    "SegmentationHead": Named((Rules(_SEGMENTATION_HEAD),)),
    "MaskScoring": Named((Rules(_MASK_SCORING),)),
    "ClassificationModel": Counted((Part("head_norm"), Part("logits"))),
}
"""Our modules, by the names of their classes. A whole model is what it has besides its modules."""
