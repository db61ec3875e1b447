"""The architectures of MobileNet, as tables.

V1 (Howard et al. 2017), V2 (Sandler et al. 2018), V3 (Howard et al. 2019) with the EdgeTPU variant,
Multi-Hardware (Chu et al. 2021) and V4 (Qin et al. 2024); "Seg" variants are slimmer at the end.

Each row is a block. The features of the rows with `output` are the endpoints of level 2 and upward,
and those of the last row are one more.
"""

import dataclasses
from typing import NamedTuple


class Conv(NamedTuple):
    """Convolution, normalisation (or a bias), activation."""

    kernel_size: int
    strides: int
    filters: int
    activation: str | None = None
    normalized: bool = True
    output: bool = False


class Separable(NamedTuple):
    """Depthwise separable convolution."""

    strides: int
    filters: int
    activation: str | None = None
    output: bool = False


class Inverted(NamedTuple):
    """Inverted bottleneck."""

    kernel_size: int
    strides: int
    expand_ratio: float
    filters: int
    se_ratio: float | None = None
    use_depthwise: bool = True
    use_residual: bool = True
    activation: str | None = None
    output: bool = False


class Universal(NamedTuple):
    """Universal inverted bottleneck."""

    start_kernel_size: int
    middle_kernel_size: int
    strides: int
    expand_ratio: float
    filters: int
    activation: str | None = None
    output: bool = False


class Attention(NamedTuple):
    """Multi-query attention."""

    num_heads: int
    key_dim: int
    kv_strides: int
    activation: str | None = None
    output: bool = False


class Pool(NamedTuple):
    """Mean over all pixels."""

    activation: str | None = None
    output: bool = False


Row = Conv | Separable | Inverted | Universal | Attention | Pool


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A network.

    Attributes:
        activation: of the rows that name none.
        rows: the blocks, from the image on.
        divisor: a scaled number of filters is rounded to a multiple of this.
        layer_scale: start value of LayerScale in the blocks of V4; None leaves it out.
    """

    activation: str
    rows: tuple[Row, ...]
    divisor: int = 8
    layer_scale: float | None = None


ARCHITECTURES = {
    "MobileNetV1": Architecture(
        activation="relu6",
        divisor=1,
        rows=(
            Conv(3, 2, 32),
            Separable(1, 64),
            Separable(2, 128),
            Separable(1, 128, output=True),
            Separable(2, 256),
            Separable(1, 256, output=True),
            Separable(2, 512),
            *[Separable(1, 512)] * 4,
            Separable(1, 512, output=True),
            Separable(2, 1024),
            Separable(1, 1024, output=True),
        ),
    ),
    "MobileNetV2": Architecture(
        activation="relu6",
        rows=(
            Conv(3, 2, 32),
            Inverted(3, 1, 1, 16),
            Inverted(3, 2, 6, 24),
            Inverted(3, 1, 6, 24, output=True),
            Inverted(3, 2, 6, 32),
            Inverted(3, 1, 6, 32),
            Inverted(3, 1, 6, 32, output=True),
            Inverted(3, 2, 6, 64),
            *[Inverted(3, 1, 6, 64)] * 3,
            *[Inverted(3, 1, 6, 96)] * 2,
            Inverted(3, 1, 6, 96, output=True),
            Inverted(3, 2, 6, 160),
            *[Inverted(3, 1, 6, 160)] * 2,
            Inverted(3, 1, 6, 320, output=True),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetV3Large": Architecture(
        activation="hard_swish",
        rows=(
            Conv(3, 2, 16),
            Inverted(3, 1, 1, 16, activation="relu"),
            Inverted(3, 2, 4, 24, activation="relu"),
            Inverted(3, 1, 3, 24, activation="relu", output=True),
            Inverted(5, 2, 3, 40, se_ratio=0.25, activation="relu"),
            Inverted(5, 1, 3, 40, se_ratio=0.25, activation="relu"),
            Inverted(5, 1, 3, 40, se_ratio=0.25, activation="relu", output=True),
            Inverted(3, 2, 6, 80),
            Inverted(3, 1, 2.5, 80),
            *[Inverted(3, 1, 2.3, 80)] * 2,
            Inverted(3, 1, 6, 112, se_ratio=0.25),
            Inverted(3, 1, 6, 112, se_ratio=0.25, output=True),
            Inverted(5, 2, 6, 160, se_ratio=0.25),
            Inverted(5, 1, 6, 160, se_ratio=0.25),
            Inverted(5, 1, 6, 160, se_ratio=0.25, output=True),
            Conv(1, 1, 960),
            Pool(),
            Conv(1, 1, 1280, normalized=False),
        ),
    ),
    "MobileNetV3Small": Architecture(
        activation="hard_swish",
        rows=(
            Conv(3, 2, 16),
            Inverted(3, 2, 1, 16, se_ratio=0.25, activation="relu", output=True),
            Inverted(3, 2, 4.5, 24, activation="relu"),
            Inverted(3, 1, 88 / 24, 24, activation="relu", output=True),
            Inverted(5, 2, 4, 40, se_ratio=0.25),
            *[Inverted(5, 1, 6, 40, se_ratio=0.25)] * 2,
            Inverted(5, 1, 3, 48, se_ratio=0.25),
            Inverted(5, 1, 3, 48, se_ratio=0.25, output=True),
            Inverted(5, 2, 6, 96, se_ratio=0.25),
            Inverted(5, 1, 6, 96, se_ratio=0.25),
            Inverted(5, 1, 6, 96, se_ratio=0.25, output=True),
            Conv(1, 1, 576),
            Pool(),
            Conv(1, 1, 1024, normalized=False),
        ),
    ),
    "MobileNetV3EdgeTPU": Architecture(
        activation="relu",
        rows=(
            Conv(3, 2, 32),
            Inverted(3, 1, 1, 16, use_depthwise=False),
            Inverted(3, 2, 8, 32, use_depthwise=False),
            *[Inverted(3, 1, 4, 32, use_depthwise=False)] * 2,
            Inverted(3, 1, 4, 32, use_depthwise=False, output=True),
            Inverted(3, 2, 8, 48, use_depthwise=False),
            *[Inverted(3, 1, 4, 48, use_depthwise=False)] * 2,
            Inverted(3, 1, 4, 48, use_depthwise=False, output=True),
            Inverted(3, 2, 8, 96),
            *[Inverted(3, 1, 4, 96)] * 3,
            Inverted(3, 1, 8, 96, use_residual=False),
            *[Inverted(3, 1, 4, 96)] * 2,
            Inverted(3, 1, 4, 96, output=True),
            Inverted(5, 2, 8, 160),
            *[Inverted(5, 1, 4, 160)] * 3,
            Inverted(3, 1, 8, 192, output=True),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetV3SmallReducedFilters": Architecture(
        activation="hard_swish",
        rows=(
            Conv(3, 2, 16),
            Inverted(3, 2, 1, 16, se_ratio=0.25, activation="relu", output=True),
            Inverted(3, 2, 4.5, 24, activation="relu"),
            Inverted(3, 1, 88 / 24, 24, activation="relu", output=True),
            Inverted(5, 2, 4, 40, se_ratio=0.25),
            *[Inverted(5, 1, 6, 40, se_ratio=0.25)] * 2,
            Inverted(5, 1, 3, 48, se_ratio=0.25),
            Inverted(5, 1, 3, 48, se_ratio=0.25, output=True),
            Inverted(5, 2, 3, 48, se_ratio=0.25),
            Inverted(5, 1, 6, 48, se_ratio=0.25),
            Inverted(5, 1, 6, 48, se_ratio=0.25, output=True),
            Conv(1, 1, 288),
            Pool(),
            Conv(1, 1, 1024, normalized=False),
        ),
    ),
    "MobileNetMultiAVG": Architecture(
        activation="relu",
        rows=(
            Conv(3, 2, 32),
            Inverted(3, 2, 3, 32),
            Inverted(3, 1, 2, 32, output=True),
            Inverted(5, 2, 5, 64),
            Inverted(3, 1, 3, 64),
            Inverted(3, 1, 2, 64),
            Inverted(3, 1, 3, 64, output=True),
            Inverted(5, 2, 6, 128),
            *[Inverted(3, 1, 3, 128)] * 3,
            Inverted(3, 1, 6, 160),
            Inverted(3, 1, 4, 160, output=True),
            Inverted(3, 2, 6, 192),
            *[Inverted(5, 1, 4, 192)] * 2,
            Inverted(5, 1, 4, 192, output=True),
            Conv(1, 1, 960),
            Pool(),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetMultiMAX": Architecture(
        activation="relu",
        rows=(
            Conv(3, 2, 32),
            Inverted(3, 2, 3, 32, output=True),
            Inverted(5, 2, 6, 64),
            Inverted(3, 1, 2, 64),
            Inverted(3, 1, 2, 64, output=True),
            Inverted(5, 2, 6, 128),
            Inverted(3, 1, 4, 128),
            *[Inverted(3, 1, 3, 128)] * 2,
            Inverted(3, 1, 6, 128),
            Inverted(3, 1, 3, 128, output=True),
            Inverted(3, 2, 6, 160),
            Inverted(5, 1, 4, 160),
            Inverted(3, 1, 5, 160),
            Inverted(5, 1, 4, 160, output=True),
            Conv(1, 1, 960),
            Pool(),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetMultiAVGSeg": Architecture(
        activation="relu",
        rows=(
            Conv(3, 2, 32),
            Inverted(3, 2, 3, 32),
            Inverted(3, 1, 2, 32, output=True),
            Inverted(5, 2, 5, 64),
            Inverted(3, 1, 3, 64),
            Inverted(3, 1, 2, 64),
            Inverted(3, 1, 3, 64, output=True),
            Inverted(5, 2, 6, 128),
            *[Inverted(3, 1, 3, 128)] * 3,
            Inverted(3, 1, 6, 160),
            Inverted(3, 1, 4, 160, output=True),
            Inverted(3, 2, 6, 192),
            Inverted(5, 1, 2, 96),
            Inverted(5, 1, 4, 96),
            Inverted(5, 1, 4, 96, output=True),
            Conv(1, 1, 448, output=True),
            Pool(),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetMultiMAXSeg": Architecture(
        activation="relu",
        rows=(
            Conv(3, 2, 32),
            Inverted(3, 2, 3, 32, output=True),
            Inverted(5, 2, 6, 64),
            Inverted(3, 1, 2, 64),
            Inverted(3, 1, 2, 64, output=True),
            Inverted(5, 2, 6, 128),
            Inverted(3, 1, 4, 128),
            *[Inverted(3, 1, 3, 128)] * 2,
            Inverted(3, 1, 6, 128),
            Inverted(3, 1, 3, 128, output=True),
            Inverted(3, 2, 6, 160),
            Inverted(5, 1, 2, 96),
            Inverted(3, 1, 4, 96),
            Inverted(5, 1, 320 / 96, 96, output=True),
            Conv(1, 1, 448, output=True),
            Pool(),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetV4ConvSmall": Architecture(
        activation="relu",
        rows=(
            *[Conv(3, 2, 32)] * 2,
            Conv(1, 1, 32, output=True),
            Conv(3, 2, 96),
            Conv(1, 1, 64, output=True),
            Universal(5, 5, 2, 3, 96),
            *[Universal(0, 3, 1, 2, 96)] * 4,
            Universal(3, 0, 1, 4, 96, output=True),
            Universal(3, 3, 2, 6, 128),
            Universal(5, 5, 1, 4, 128),
            Universal(0, 5, 1, 4, 128),
            Universal(0, 5, 1, 3, 128),
            Universal(0, 3, 1, 4, 128),
            Universal(0, 3, 1, 4, 128, output=True),
            Conv(1, 1, 960),
            Pool(),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetV4ConvMedium": Architecture(
        activation="relu",
        rows=(
            Conv(3, 2, 32),
            Inverted(3, 2, 4, 48, use_depthwise=False, output=True),
            Universal(3, 5, 2, 4, 80),
            Universal(3, 3, 1, 2, 80, output=True),
            Universal(3, 5, 2, 6, 160),
            *[Universal(3, 3, 1, 4, 160)] * 2,
            Universal(3, 5, 1, 4, 160),
            Universal(3, 3, 1, 4, 160),
            Universal(3, 0, 1, 4, 160),
            Universal(0, 0, 1, 2, 160),
            Universal(3, 0, 1, 4, 160, output=True),
            Universal(5, 5, 2, 6, 256),
            Universal(5, 5, 1, 4, 256),
            *[Universal(3, 5, 1, 4, 256)] * 2,
            Universal(0, 0, 1, 4, 256),
            Universal(3, 0, 1, 4, 256),
            Universal(3, 5, 1, 2, 256),
            Universal(5, 5, 1, 4, 256),
            *[Universal(0, 0, 1, 4, 256)] * 2,
            Universal(5, 0, 1, 2, 256, output=True),
            Conv(1, 1, 960),
            Pool(),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetV4ConvMediumSeg": Architecture(
        activation="relu6",
        rows=(
            Conv(3, 2, 32),
            Inverted(3, 2, 4, 48, use_depthwise=False, output=True),
            Universal(3, 5, 2, 4, 80),
            Universal(3, 3, 1, 2, 80, output=True),
            Universal(3, 5, 2, 6, 160),
            *[Universal(3, 3, 1, 4, 160)] * 2,
            Universal(3, 5, 1, 4, 160),
            Universal(3, 3, 1, 4, 160),
            Universal(3, 0, 1, 4, 160),
            Universal(3, 0, 1, 4, 160, output=True),
            Universal(5, 5, 2, 6, 256),
            Universal(5, 5, 1, 4, 128),
            *[Universal(3, 5, 1, 4, 128)] * 2,
            Universal(3, 0, 1, 4, 128),
            Universal(3, 5, 1, 2, 128),
            Universal(5, 5, 1, 4, 128),
            Universal(5, 0, 1, 2, 128),
            Conv(1, 1, 448, output=True),
            Pool(),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetV4ConvLarge": Architecture(
        activation="relu",
        rows=(
            Conv(3, 2, 24),
            Inverted(3, 2, 4, 48, use_depthwise=False, output=True),
            Universal(3, 5, 2, 4, 96),
            Universal(3, 3, 1, 4, 96, output=True),
            Universal(3, 5, 2, 4, 192),
            *[Universal(3, 3, 1, 4, 192)] * 3,
            Universal(3, 5, 1, 4, 192),
            *[Universal(5, 3, 1, 4, 192)] * 5,
            Universal(3, 0, 1, 4, 192, output=True),
            Universal(5, 5, 2, 4, 512),
            *[Universal(5, 5, 1, 4, 512)] * 3,
            Universal(5, 0, 1, 4, 512),
            Universal(5, 3, 1, 4, 512),
            *[Universal(5, 0, 1, 4, 512)] * 2,
            Universal(5, 3, 1, 4, 512),
            Universal(5, 5, 1, 4, 512),
            *[Universal(5, 0, 1, 4, 512)] * 2,
            Universal(5, 0, 1, 4, 512, output=True),
            Conv(1, 1, 960),
            Pool(),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetV4HybridMedium": Architecture(
        activation="relu",
        layer_scale=1e-5,
        rows=(
            Conv(3, 2, 32),
            Inverted(3, 2, 4, 48, use_depthwise=False, output=True),
            Universal(3, 5, 2, 4, 80),
            Universal(3, 3, 1, 2, 80, output=True),
            Universal(3, 5, 2, 6, 160),
            Universal(0, 0, 1, 2, 160),
            Universal(3, 3, 1, 4, 160),
            Universal(3, 5, 1, 4, 160),
            Attention(4, 64, 2),
            Universal(3, 3, 1, 4, 160),
            Attention(4, 64, 2),
            Universal(3, 0, 1, 4, 160),
            Attention(4, 64, 2),
            Universal(3, 3, 1, 4, 160),
            Attention(4, 64, 2),
            Universal(3, 0, 1, 4, 160, output=True),
            Universal(5, 5, 2, 6, 256),
            Universal(5, 5, 1, 4, 256),
            *[Universal(3, 5, 1, 4, 256)] * 2,
            Universal(0, 0, 1, 2, 256),
            Universal(3, 5, 1, 2, 256),
            Universal(0, 0, 1, 2, 256),
            Universal(0, 0, 1, 4, 256),
            Attention(4, 64, 1),
            Universal(3, 0, 1, 4, 256),
            Attention(4, 64, 1),
            Universal(5, 5, 1, 4, 256),
            Attention(4, 64, 1),
            Universal(5, 0, 1, 4, 256),
            Attention(4, 64, 1),
            Universal(5, 0, 1, 4, 256, output=True),
            Conv(1, 1, 960),
            Pool(),
            Conv(1, 1, 1280),
        ),
    ),
    "MobileNetV4HybridLarge": Architecture(
        activation="gelu",
        layer_scale=1e-5,
        rows=(
            Conv(3, 2, 24),
            Inverted(3, 2, 4, 48, use_depthwise=False, output=True),
            Universal(3, 5, 2, 4, 96),
            Universal(3, 3, 1, 4, 96, output=True),
            Universal(3, 5, 2, 4, 192),
            *[Universal(3, 3, 1, 4, 192)] * 3,
            Universal(3, 5, 1, 4, 192),
            *[Universal(5, 3, 1, 4, 192)] * 2,
            Attention(8, 48, 2),
            Universal(5, 3, 1, 4, 192),
            Attention(8, 48, 2),
            Universal(5, 3, 1, 4, 192),
            Attention(8, 48, 2),
            Universal(5, 3, 1, 4, 192),
            Attention(8, 48, 2),
            Universal(3, 0, 1, 4, 192, output=True),
            Universal(5, 5, 2, 4, 512),
            *[Universal(5, 5, 1, 4, 512)] * 3,
            Universal(5, 0, 1, 4, 512),
            Universal(5, 3, 1, 4, 512),
            *[Universal(5, 0, 1, 4, 512)] * 2,
            Universal(5, 3, 1, 4, 512),
            Universal(5, 5, 1, 4, 512),
            Attention(8, 64, 1),
            Universal(5, 0, 1, 4, 512),
            Attention(8, 64, 1),
            Universal(5, 0, 1, 4, 512),
            Attention(8, 64, 1),
            Universal(5, 0, 1, 4, 512),
            Attention(8, 64, 1),
            Universal(5, 0, 1, 4, 512, output=True),
            Conv(1, 1, 960),
            Pool(),
            Conv(1, 1, 1280),
        ),
    ),
}
