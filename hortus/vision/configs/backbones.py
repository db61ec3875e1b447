"""Configs of the image backbones."""

import dataclasses
from collections.abc import Iterator

from hortus import hyperparams
from hortus.hyperparams.bounds import (
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
)
from hortus.vision.configs import checks, model_ids
from hortus.vision.configs.numbers import Blocks, DropRate, Level, Pixels, Width, WidthFactor

PADDINGS = ("same", "symmetric")
"""Values of `padding`."""


@dataclasses.dataclass
class Transformer(hyperparams.Config):
    """The encoder blocks of a vision transformer."""

    mlp_dim: Width = 1
    """Width of the hidden MLP layer; a named ViT brings its own."""
    num_heads: Width = 1
    """Attention heads; a named ViT brings its own."""
    num_layers: Blocks = 1
    """Encoder blocks; a named ViT brings its own."""
    attention_dropout_rate: DropRate = 0.0
    """Share of attention weights dropped in training, 0 to 1."""
    dropout_rate: DropRate = 0.0
    """Share of activations dropped in training, 0 to 1."""


@dataclasses.dataclass
class VisionTransformer(hyperparams.Config):
    """Vision transformer (Dosovitskiy et al. 2020) with the DeiT options."""

    model_name: str = "vit-b16"
    """Size and patch: vit-ti16, s16, b16, b32, l16, l32, h14, g14, G14 or e14."""
    pooler: str = "token"
    """Image feature: `token` (class token), `gap` (mean over patches) or `none` (all patches)."""
    representation_size: NonNegativeInt = 0
    """Width of a tanh layer before the logits, as in ViT pre-training; 0 leaves it out."""
    hidden_size: Width = 1
    """Width of a token; a named ViT brings its own."""
    patch_size: PositiveInt = 16
    """Side of a square patch, in pixels; a named ViT brings its own."""
    transformer: Transformer = dataclasses.field(default_factory=Transformer)
    """The encoder blocks."""
    init_stochastic_depth_rate: DropRate = 0.0
    """Chance, 0 to 1, that the last block is skipped in training; earlier ones less."""
    original_init: bool = True
    """Initialise as in the ViT paper; otherwise as in DeiT."""
    pos_embed_shape: tuple[PositiveInt, PositiveInt] | None = None
    """Patch grid (rows, columns) of the stored position embedding, resized when the input differs;
    null takes the input's own."""
    output_encoded_tokens: bool = True
    """Return the encoded tokens beside the pooled feature."""
    output_2d_feature_maps: bool = False
    """Return the tokens as a map under their level ('4' for 16-pixel patches), for decoders."""
    layer_scale_init_value: NonNegativeFloat = 0.0
    """Start value of LayerScale (Touvron et al. 2021); 0 leaves it out."""
    transformer_partition_dims: tuple[PositiveInt, PositiveInt, PositiveInt, PositiveInt] | None = (
        hyperparams.inert(None, "the engines split the batch, never a layer, over devices")
    )
    output_attention_scores: bool = False
    """Return the attention of every block, for inspection."""
    activation: str = "approximate_gelu"
    """Of the MLPs: `approximate_gelu`, or `gelu` as in PyTorch."""

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "model_name", ("", *model_ids.VIT))
        yield from checks.one_of(self, "pooler", ("token", "gap", "none"))


@dataclasses.dataclass
class ResNet(hyperparams.Config):
    """ResNet (He et al. 2015) with the ResNet-D and ResNet-RS options (Bello et al. 2021)."""

    model_id: PositiveInt = 50
    """Depth: 10, 18, 26, 34, 50, 101, 152, 200, 270, 350 or 420."""
    depth_multiplier: WidthFactor = 1.0
    """Factor on the number of filters of all stages; above 0."""
    stem_type: str = "v0"
    """First layers: `v0` one 7x7 convolution, `v1` three 3x3 ones (ResNet-D)."""
    se_ratio: Fraction = 0.0
    """Squeeze-excite width as a share of the block's, 0 to 1; 0 leaves it out."""
    stochastic_depth_drop_rate: DropRate = 0.0
    """Chance, 0 to 1, that the last block is skipped in training; earlier ones less."""
    scale_stem: bool = True
    """Let depth_multiplier scale the stem too."""
    resnetd_shortcut: bool = False
    """Average-pool before the 1x1 convolution of a strided shortcut (ResNet-D)."""
    replace_stem_max_pool: bool = False
    """Use a strided 3x3 convolution instead of the stem's max pooling (ResNet-RS)."""
    bn_trainable: bool = True
    """Train scale and offset of batch normalisation."""
    padding: str = "same"
    """Of strided layers: `same`, or `symmetric` for as much on both sides, as in PyTorch: weights
    want the padding that they were trained with."""
    project_every_level: bool = True
    """Project the shortcut of each level's first block, also where shapes stay the same, as at
    level 2 of depths 18 and 34; PyTorch's models do not."""
    pool_unstrided_shortcut: bool = True
    """Let resnetd_shortcut average at level 2 too, where nothing is strided; PyTorch's models do
    not."""

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "padding", PADDINGS)
        yield from checks.one_of(self, "model_id", model_ids.RESNET)
        yield from checks.one_of(self, "stem_type", model_ids.STEMS)


@dataclasses.dataclass
class DilatedResNet(hyperparams.Config):
    """ResNet whose last stages dilate instead of striding, for segmentation (DeepLab)."""

    model_id: PositiveInt = 50
    """Depth: 50, 101, 152 or 200."""
    output_stride: PositiveInt = 16
    """Input pixels per pixel of the last feature map: 4, 8, 16 or 32."""
    multigrid: list[PositiveInt] | None = None
    """Dilation factors of the three blocks of the last stage, such as [1, 2, 4]; null for none."""
    stem_type: str = "v0"
    """First layers: `v0` one 7x7 convolution, `v1` three 3x3 ones (ResNet-D)."""
    last_stage_repeats: Blocks = 1
    """How often the last stage is run; 1 or more."""
    se_ratio: Fraction = 0.0
    """Squeeze-excite width as a share of the block's, 0 to 1; 0 leaves it out."""
    stochastic_depth_drop_rate: DropRate = 0.0
    """Chance, 0 to 1, that the last block is skipped in training; earlier ones less."""
    resnetd_shortcut: bool = False
    """Average-pool before the 1x1 convolution of a strided shortcut (ResNet-D)."""
    replace_stem_max_pool: bool = False
    """Use a strided 3x3 convolution instead of the stem's max pooling (ResNet-RS)."""
    padding: str = "same"
    """Of strided layers: `same`, or `symmetric` for as much on both sides, as in PyTorch: weights
    want the padding that they were trained with."""

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "model_id", model_ids.DILATED_RESNET)
        yield from checks.one_of(self, "stem_type", model_ids.STEMS)
        yield from checks.one_of(self, "output_stride", (4, 8, 16, 32))
        yield from checks.length(self, 3, "multigrid")
        yield from checks.one_of(self, "padding", PADDINGS)


@dataclasses.dataclass
class ResNetUNet(hyperparams.Config):
    """ResNet whose coarse features are upsampled again through ConvNeXt-style blocks.

    The three `upsample_*` lists go from the coarsest level to the finest.
    """

    model_id: PositiveInt = 50
    """Depth: 10, 18, 26, 34, 50, 101, 152, 200, 270, 350 or 420."""
    depth_multiplier: WidthFactor = 1.0
    """Factor on the number of filters of all ResNet stages; above 0."""
    stem_type: str = "v0"
    """First layers: `v0` one 7x7 convolution, `v1` three 3x3 ones (ResNet-D)."""
    se_ratio: Fraction = 0.0
    """Squeeze-excite width as a share of the block's, 0 to 1; 0 leaves it out."""
    stochastic_depth_drop_rate: DropRate = 0.0
    """Chance, 0 to 1, that the last block is skipped in training; earlier ones less."""
    scale_stem: bool = True
    """Let depth_multiplier scale the stem too."""
    resnetd_shortcut: bool = False
    """Average-pool before the 1x1 convolution of a strided shortcut (ResNet-D)."""
    replace_stem_max_pool: bool = False
    """Use a strided 3x3 convolution instead of the stem's max pooling (ResNet-RS)."""
    bn_trainable: bool = True
    """Train scale and offset of batch normalisation."""
    upsample_repeats: list[Blocks] = dataclasses.field(default_factory=lambda: [18, 1, 1])
    """Blocks per upsampled level."""
    upsample_filters: list[Width] = dataclasses.field(default_factory=lambda: [384, 384, 384])
    """Filters per upsampled level."""
    upsample_kernel_sizes: list[Pixels] = dataclasses.field(default_factory=lambda: [7, 7, 7])
    """Side of the depthwise kernel per upsampled level, in pixels."""

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "model_id", model_ids.RESNET)
        yield from checks.one_of(self, "stem_type", model_ids.STEMS)
        per_level = ("upsample_repeats", "upsample_filters", "upsample_kernel_sizes")
        lengths = {name: len(getattr(self, name)) for name in per_level}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} {count}" for name, count in lengths.items())
            yield f"upsample_repeats must be as long as the other upsample lists, got {found}"


@dataclasses.dataclass
class EfficientNet(hyperparams.Config):
    """EfficientNet (Tan and Le 2019)."""

    model_id: str = "b0"
    """Size: b0 to b7."""
    se_ratio: Fraction = 0.0
    """Squeeze-excite width as a share of the block's input, 0 to 1; the paper's is 0.25."""
    stochastic_depth_drop_rate: DropRate = 0.0
    """Chance, 0 to 1, that the last block is skipped in training; earlier ones less."""
    padding: str = "same"
    """Of strided layers: `same`, or `symmetric` for as much on both sides, as in PyTorch: weights
    want the padding that they were trained with."""
    se_inner_activation: str = "relu"
    """Of the squeeze-excite bottleneck; the paper's, and PyTorch's, is `swish`."""

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "padding", PADDINGS)
        yield from checks.one_of(self, "model_id", model_ids.EFFICIENTNET)


@dataclasses.dataclass
class MobileNet(hyperparams.Config):
    """MobileNet V1 to V4 (Howard et al. 2017, 2019; Sandler et al. 2018; Qin et al. 2024)."""

    model_id: str = "MobileNetV2"
    """MobileNetV1, V2, V3Large, V3Small, V3EdgeTPU, V3SmallReducedFilters, MultiAVG, MultiMAX
    (each also Seg), V4ConvSmall, V4ConvMedium, V4ConvMediumSeg, V4ConvLarge, V4HybridMedium or
    V4HybridLarge, each with the prefix MobileNet."""
    filter_size_scale: WidthFactor = 1.0
    """Factor on the number of filters of all layers (width multiplier); above 0."""
    stochastic_depth_drop_rate: DropRate = 0.0
    """Chance, 0 to 1, that a block is skipped in training."""
    flat_stochastic_depth_drop_rate: bool = True
    """The same chance for all blocks; otherwise it grows from 0 to the given one with depth."""
    output_stride: PositiveInt | None = None
    """Input pixels per pixel of the last feature map: 2, 4, 8, 16 or 32; layers that would stride
    further dilate instead. Null is the network's own."""
    output_intermediate_endpoints: bool = False
    """Also return the expanded features inside the blocks, as '2/depthwise' and so on."""
    padding: str = "same"
    """Of strided layers: `same`, or `symmetric` for as much on both sides, as in PyTorch: weights
    want the padding that they were trained with."""
    se_gating_activation: str = "hard_sigmoid"
    """From squeeze-excite to the factor of a channel: `hard_sigmoid`, whose slope is rounded to
    0.16667, or `exact_hard_sigmoid`, of 1/6, as in PyTorch."""

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "model_id", model_ids.MOBILENET)
        yield from checks.one_of(self, "output_stride", (None, 2, 4, 8, 16, 32))
        yield from checks.one_of(self, "padding", PADDINGS)


@dataclasses.dataclass
class SpineNet(hyperparams.Config):
    """SpineNet (Du et al. 2019): a backbone with learned cross-scale connections, no decoder."""

    model_id: str = "49"
    """Size: 49S, 49, 96, 143, 143L or 190."""
    stochastic_depth_drop_rate: DropRate = 0.0
    """Chance, 0 to 1, that the last block is skipped in training; earlier ones less."""
    min_level: Level = 3
    """Finest output level; the model's min_level. Level l has 1 pixel per 2^l of the input."""
    max_level: Level = 7
    """Coarsest output level; the model's max_level."""

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "model_id", model_ids.SPINENET)
        yield from checks.ordered(self, "min_level", "max_level")


@dataclasses.dataclass
class SpineNetMobile(hyperparams.Config):
    """Mobile SpineNet (Du et al. 2020): SpineNet of inverted bottleneck blocks."""

    model_id: str = "49"
    """Size: 49XS, 49S or 49."""
    stochastic_depth_drop_rate: DropRate = 0.0
    """Chance, 0 to 1, that the last block is skipped in training; earlier ones less."""
    se_ratio: Fraction = 0.2
    """Squeeze-excite width as a share of the block's input, 0 to 1; 0 leaves it out."""
    expand_ratio: PositiveInt = 6
    """Factor by which a block widens its input; 1 or more."""
    min_level: Level = 3
    """Finest output level; the model's min_level. Level l has 1 pixel per 2^l of the input."""
    max_level: Level = 7
    """Coarsest output level; the model's max_level."""
    use_keras_upsampling_2d: bool = hyperparams.inert(
        False, "upsampling has one implementation, with the same result"
    )

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "model_id", model_ids.SPINENET_MOBILE)
        yield from checks.ordered(self, "min_level", "max_level")


@dataclasses.dataclass
class RevNet(hyperparams.Config):
    """RevNet (Gomez et al. 2017): residual blocks whose input follows from their output."""

    model_id: PositiveInt = 56
    """Depth: 38, 56 or 104."""

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "model_id", model_ids.REVNET)


@dataclasses.dataclass
class MobileDet(hyperparams.Config):
    """MobileDet (Xiong et al. 2020): mobile detection backbones, one per kind of hardware."""

    model_id: str = "MobileDetCPU"
    """MobileDetCPU, MobileDetDSP, MobileDetEdgeTPU or MobileDetGPU."""
    filter_size_scale: WidthFactor = 1.0
    """Factor on the number of filters of all layers (width multiplier); above 0."""

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "model_id", model_ids.MOBILEDET)


@dataclasses.dataclass
class Backbone(hyperparams.OneOfConfig):
    """The image backbone; subclass it and add a field to offer one more."""

    type: str | None = None
    """Key of the backbone; its settings are in the field of the same name."""
    resnet: ResNet = dataclasses.field(default_factory=ResNet)
    dilated_resnet: DilatedResNet = dataclasses.field(default_factory=DilatedResNet)
    resnet_unet: ResNetUNet = dataclasses.field(default_factory=ResNetUNet)
    revnet: RevNet = dataclasses.field(default_factory=RevNet)
    efficientnet: EfficientNet = dataclasses.field(default_factory=EfficientNet)
    spinenet: SpineNet = dataclasses.field(default_factory=SpineNet)
    spinenet_mobile: SpineNetMobile = dataclasses.field(default_factory=SpineNetMobile)
    mobilenet: MobileNet = dataclasses.field(default_factory=MobileNet)
    mobiledet: MobileDet = dataclasses.field(default_factory=MobileDet)
    vit: VisionTransformer = dataclasses.field(default_factory=VisionTransformer)


def level_problems(model: hyperparams.Config) -> Iterator[str]:
    """Yields where a backbone that is told its levels contradicts those of the model."""
    for name in ("min_level", "max_level"):
        branch = f"backbone.{model.get('backbone.type')}.{name}"
        wanted, found = model.get(name), model.get(branch)
        if found is not None and found != wanted:
            yield f"{name} must equal {branch} ({found}), got {wanted}"
