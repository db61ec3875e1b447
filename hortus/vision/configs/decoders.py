"""Configs of the decoders: from backbone features to the features that heads see."""

import dataclasses
from collections.abc import Iterator

from hortus import hyperparams
from hortus.hyperparams.bounds import PositiveInt
from hortus.vision.configs import checks
from hortus.vision.configs.numbers import Blocks, DropRate, Level, Pixels, Width


@dataclasses.dataclass
class Identity(hyperparams.Config):
    """Passes the backbone's features on."""


@dataclasses.dataclass
class FPN(hyperparams.Config):
    """Feature pyramid network (Lin et al. 2016)."""

    num_filters: Width = 256
    """Filters of every level."""
    fusion_type: str = "sum"
    """How a coarse level joins the next finer one: `sum` or `concat`."""
    use_separable_conv: bool = False
    """Depthwise separable convolutions: smaller and faster on mobile devices."""
    use_keras_layer: bool = hyperparams.inert(False, "the decoder is made of Keras layers always")

    def check(self) -> Iterator[str]:
        yield from checks.one_of(self, "fusion_type", ("sum", "concat"))


@dataclasses.dataclass
class NASFPN(hyperparams.Config):
    """NAS-FPN (Ghiasi et al. 2019): a searched pyramid cell, repeated."""

    num_filters: Width = 256
    """Filters of every level."""
    num_repeats: Blocks = 5
    """How often the cell is stacked; 1 or more."""
    use_separable_conv: bool = False
    """Depthwise separable convolutions: smaller and faster on mobile devices."""


@dataclasses.dataclass
class ASPP(hyperparams.Config):
    """Atrous spatial pyramid pooling (DeepLab V3, Chen et al. 2017)."""

    level: Level = 4
    """Level of the backbone features that are used: 1 pixel per 2^level of the input."""
    dilation_rates: list[PositiveInt] = dataclasses.field(default_factory=list)
    """Dilation of each 3x3 branch, such as [6, 12, 18]; empty leaves 1x1 and pooling only."""
    dropout_rate: DropRate = 0.0
    """Share of the output dropped in training, 0 to 1."""
    num_filters: Width = 256
    """Filters of every branch and of the output."""
    use_depthwise_convolution: bool = False
    """Depthwise separable convolutions in the branches: smaller and faster."""
    pool_kernel_size: list[Pixels] | None = None
    """Height and width of the pooling branch's window, in input pixels; null or empty pools all."""
    spp_layer_version: str = "v1"
    """Variant of the pyramid layer, `v1` or `v2`; both have the same weights."""
    output_tensor: bool = False
    """Return the feature map itself instead of a mapping from level to map."""

    def check(self) -> Iterator[str]:
        yield from checks.length(self, 2, "pool_kernel_size")
        yield from checks.one_of(self, "spp_layer_version", ("v1", "v2"))


@dataclasses.dataclass
class Decoder(hyperparams.OneOfConfig):
    """The decoder; subclass it and add a field to offer one more."""

    type: str | None = None
    """Key of the decoder; its settings are in the field of the same name."""
    fpn: FPN = dataclasses.field(default_factory=FPN)
    nasfpn: NASFPN = dataclasses.field(default_factory=NASFPN)
    identity: Identity = dataclasses.field(default_factory=Identity)
    aspp: ASPP = dataclasses.field(default_factory=ASPP)
