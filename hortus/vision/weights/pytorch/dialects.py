"""What the parts of our backbones are called in PyTorch models, as data.

The rules lead from the path of one of our layers to a module of theirs. Besides the numbers of our
names they know `{k}`, the place of a block among all blocks, and `{s}` and `{j}`, the stage of that
block in the file and its place in the stage.
"""

import dataclasses

from hortus.vision.weights.rules import Rules


@dataclasses.dataclass(frozen=True)
class Dialect:
    """One way to name the tensors of a family.

    Attributes:
        name: who names them so.
        proof: a module that only this way has.
        rules: alternatives from our layers to their modules; that which finds most counts.
        logits: their module of the class scores.
    """

    name: str
    proof: str
    rules: tuple[Rules, ...]
    logits: str


def _block(ours: str, theirs: str, parts: dict[str, str]) -> dict[str, str]:
    return {f"{ours}/{part}": f"{theirs}.{name}" for part, name in parts.items()}


def _either(kind: str, theirs: str, parts: dict[str, str]) -> dict[str, str]:
    """A kind of block with squeeze-excite, or without, where that changes no other name."""
    return {
        **_block(f"{kind}{{i}}", theirs, parts),
        **_block(f"{kind}_se{{i}}", theirs, parts),
    }


_SQUEEZE = "squeeze_excitation/reduce"
_EXCITE = "squeeze_excitation/expand"

# ---- ResNet ---------------------------------------------------------------------------------


def _resnet(level: str, convolution: int) -> Rules:
    """`convolution` is the place of the shortcut's: the second where it follows a pooling."""
    return Rules(
        {
            "stem/conv": "conv1",
            "stem/norm": "bn1",
            "stem1/conv": "conv1.0",
            "stem1/norm": "conv1.1",
            "stem2/conv": "conv1.3",
            "stem2/norm": "conv1.4",
            "stem3/conv": "conv1.6",
            "stem3/norm": "bn1",
            "stem_pool/conv": "maxpool.0",
            "stem_pool/norm": "maxpool.1",
            **_block(
                f"{level}{{l}}_block{{b}}",
                "layer{l-1}.{b-1}",
                {
                    "conv{i}": "conv{i}",
                    "norm{i}": "bn{i}",
                    "shortcut_conv": f"downsample.{convolution}",
                    "shortcut_norm": f"downsample.{convolution + 1}",
                    _SQUEEZE: "se.fc1",
                    _EXCITE: "se.fc2",
                },
            ),
        }
    )


def _resnets(level: str) -> tuple[Dialect, ...]:
    rules = (_resnet(level, 0), _resnet(level, 1))
    return (Dialect("torchvision or timm", "layer1.0.conv1", rules, "fc"),)


# ---- MobileNet: `head` is the last convolution before the logits ----------------------------

_SEPARABLE = {  # without widening
    "depthwise": "conv_dw",
    "depthwise_norm": "bn1",
    _SQUEEZE: "se.conv_reduce",
    _EXCITE: "se.conv_expand",
    "project": "conv_pw",
    "project_norm": "bn2",
}
_INVERTED = {
    "expand": "conv_pw",
    "expand_norm": "bn1",
    "depthwise": "conv_dw",
    "depthwise_norm": "bn2",
    _SQUEEZE: "se.conv_reduce",
    _EXCITE: "se.conv_expand",
    "project": "conv_pwl",
    "project_norm": "bn3",
}
_FUSED = {
    "expand": "conv_exp",
    "expand_norm": "bn1",
    _SQUEEZE: "se.conv_reduce",
    _EXCITE: "se.conv_expand",
    "project": "conv_pwl",
    "project_norm": "bn2",
}
_UNIVERSAL = {
    "start": "dw_start.conv",
    "start_norm": "dw_start.bn",
    "expand": "pw_exp.conv",
    "expand_norm": "pw_exp.bn",
    "middle": "dw_mid.conv",
    "middle_norm": "dw_mid.bn",
    "project": "pw_proj.conv",
    "project_norm": "pw_proj.bn",
    "layer_scale": "layer_scale",
}
_TIMM_BLOCK = "blocks.{s}.{j}"
_CONV = {"conv": "conv", "norm": "bn1"}
_TIMM_MOBILENET = {
    "stem/conv": "conv_stem",
    "stem/norm": "bn1",
    **_block("conv{i}", _TIMM_BLOCK, _CONV),
    **_either("separable", _TIMM_BLOCK, _SEPARABLE),
    **_either("inverted", _TIMM_BLOCK, _INVERTED),
    **_either("fused", _TIMM_BLOCK, _FUSED),
    **_block("universal{i}", _TIMM_BLOCK, _UNIVERSAL),
    "head/conv": "conv_head",
}
_TORCHVISION_V2 = {
    "stem/conv": "features.0.0",
    "stem/norm": "features.0.1",
    **_block(
        "separable{i}",
        "features.{k+1}.conv",
        {"depthwise": "0.0", "depthwise_norm": "0.1", "project": "1", "project_norm": "2"},
    ),
    **_block(
        "inverted{i}",
        "features.{k+1}.conv",
        {
            "expand": "0.0",
            "expand_norm": "0.1",
            "depthwise": "1.0",
            "depthwise_norm": "1.1",
            "project": "2",
            "project_norm": "3",
        },
    ),
    "head/conv": "features.{k+1}.0",
    "head/norm": "features.{k+1}.1",
}
_PLAIN_SEPARABLE = {
    "depthwise": "0.0",
    "depthwise_norm": "0.1",
    "project": "1.0",
    "project_norm": "1.1",
}
_EXCITED_SEPARABLE = {
    "depthwise": "0.0",
    "depthwise_norm": "0.1",
    _SQUEEZE: "1.fc1",
    _EXCITE: "1.fc2",
    "project": "2.0",
    "project_norm": "2.1",
}
_PLAIN_INVERTED = {
    "expand": "0.0",
    "expand_norm": "0.1",
    "depthwise": "1.0",
    "depthwise_norm": "1.1",
    "project": "2.0",
    "project_norm": "2.1",
}
_EXCITED_INVERTED = {
    "expand": "0.0",
    "expand_norm": "0.1",
    "depthwise": "1.0",
    "depthwise_norm": "1.1",
    _SQUEEZE: "2.fc1",
    _EXCITE: "2.fc2",
    "project": "3.0",
    "project_norm": "3.1",
}
_TORCHVISION_V3 = {
    "stem/conv": "features.0.0",
    "stem/norm": "features.0.1",
    **_block("separable{i}", "features.{k+1}.block", _PLAIN_SEPARABLE),
    **_block("separable_se{i}", "features.{k+1}.block", _EXCITED_SEPARABLE),
    **_block("inverted{i}", "features.{k+1}.block", _PLAIN_INVERTED),
    **_block("inverted_se{i}", "features.{k+1}.block", _EXCITED_INVERTED),
    **_block("conv{i}", "features.{k+1}", {"conv": "0", "norm": "1"}),
    "head/conv": "classifier.0",
}

# ---- EfficientNet ---------------------------------------------------------------------------

_TORCHVISION_EFFICIENT = {
    "stem/conv": "features.0.0",
    "stem/norm": "features.0.1",
    **_block("separable_se{i}", "features.{s}.{j}.block", _EXCITED_SEPARABLE),
    **_block("inverted_se{i}", "features.{s}.{j}.block", _EXCITED_INVERTED),
    "head/conv": "features.{top}.0",
    "head/norm": "features.{top}.1",
}
_TIMM_EFFICIENT = {
    "stem/conv": "conv_stem",
    "stem/norm": "bn1",
    **_either("separable", _TIMM_BLOCK, _SEPARABLE),
    **_either("inverted", _TIMM_BLOCK, _INVERTED),
    "head/conv": "conv_head",
    "head/norm": "bn2",
}
_PACKAGE_EFFICIENT = {
    "stem/conv": "_conv_stem",
    "stem/norm": "_bn0",
    **{
        key: name
        for kind in ("separable", "inverted")
        for key, name in _either(
            kind,
            "_blocks.{k}",
            {
                "expand": "_expand_conv",
                "expand_norm": "_bn0",
                "depthwise": "_depthwise_conv",
                "depthwise_norm": "_bn1",
                _SQUEEZE: "_se_reduce",
                _EXCITE: "_se_expand",
                "project": "_project_conv",
                "project_norm": "_bn2",
            },
        ).items()
    },
    "head/conv": "_conv_head",
    "head/norm": "_bn1",
}

# ---- Vision transformer; attention and embeddings follow below ------------------------------

_TORCHVISION_LAYER = "encoder.layers.encoder_layer_{i-1}"
_TORCHVISION_VIT = {
    "patches": "conv_proj",
    "norm": "encoder.ln",
    **_block(
        "block{i}",
        _TORCHVISION_LAYER,
        {
            "attention_norm": "ln_1",
            "mlp_norm": "ln_2",
            "mlp_hidden": "mlp.0",
            "mlp_output": "mlp.3",
        },
    ),
}
# As the first models were saved.
_OLDER_TORCHVISION_VIT = {
    **_TORCHVISION_VIT,
    "block{i}/mlp_hidden": f"{_TORCHVISION_LAYER}.mlp.linear_1",
    "block{i}/mlp_output": f"{_TORCHVISION_LAYER}.mlp.linear_2",
}
_TIMM_VIT = {
    "patches": "patch_embed.proj",
    "norm": "norm",
    "pre_logits": "pre_logits.fc",
    **_block(
        "block{i}",
        "blocks.{i-1}",
        {
            "attention_norm": "norm1",
            "mlp_norm": "norm2",
            "mlp_hidden": "mlp.fc1",
            "mlp_output": "mlp.fc2",
            "attention_rest/0": "ls1",
            "mlp_rest/0": "ls2",
        },
    ),
}
# The mean of all patches is normalised after it was taken.
_TIMM_VIT_POOLED = {**_TIMM_VIT, "norm": "fc_norm"}

TENSORS = {
    "torchvision": {
        "class_token-0/token": "class_token",
        "position_embedding-0/embedding": "encoder.pos_embedding",
    },
    "timm": {
        "class_token-0/token": "cls_token",
        "position_embedding-0/embedding": "pos_embed",
    },
}
"""Tensors of vision transformers that belong to no module."""
ATTENTION = {
    "torchvision": (
        f"{_TORCHVISION_LAYER}.self_attention.in_proj_{{leaf}}",
        f"{_TORCHVISION_LAYER}.self_attention.out_proj.{{leaf}}",
    ),
    "timm": ("blocks.{i-1}.attn.qkv.{leaf}", "blocks.{i-1}.attn.proj.{leaf}"),
}
"""Query, key and value in one, and what follows attention."""

DIALECTS: dict[str, tuple[Dialect, ...]] = {
    "ResNet": _resnets("level"),
    "DilatedResNet": _resnets("stage"),
    "MobileNet": (
        Dialect("torchvision", "features.1.conv.0.0", (Rules(_TORCHVISION_V2),), "classifier.1"),
        Dialect("torchvision", "features.1.block.0.0", (Rules(_TORCHVISION_V3),), "classifier.3"),
        Dialect(
            "timm",
            "conv_stem",
            (
                Rules({**_TIMM_MOBILENET, "head/norm": "bn2"}),
                Rules({**_TIMM_MOBILENET, "head/norm": "norm_head"}),
            ),
            "classifier",
        ),
    ),
    "EfficientNet": (
        Dialect(
            "torchvision",
            "features.1.0.block.0.0",
            (Rules(_TORCHVISION_EFFICIENT),),
            "classifier.1",
        ),
        Dialect("timm", "conv_stem", (Rules(_TIMM_EFFICIENT),), "classifier"),
        Dialect("efficientnet-pytorch", "_conv_stem", (Rules(_PACKAGE_EFFICIENT),), "_fc"),
    ),
    "VisionTransformer": (
        Dialect(
            "torchvision",
            "conv_proj",
            (Rules(_TORCHVISION_VIT), Rules(_OLDER_TORCHVISION_VIT)),
            "heads.head",
        ),
        Dialect("timm", "patch_embed.proj", (Rules(_TIMM_VIT), Rules(_TIMM_VIT_POOLED)), "head"),
    ),
}
"""By our class: the ways that its like is named."""
