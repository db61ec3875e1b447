"""Configs of the video backbones."""

import dataclasses
from collections.abc import Iterator

from hortus import hyperparams
from hortus.hyperparams.bounds import Fraction, PositiveInt
from hortus.vision.configs.numbers import DropRate


@dataclasses.dataclass
class ResNet3DBlock(hyperparams.Config):
    """One stage of a 3D ResNet."""

    temporal_strides: PositiveInt = 1
    """Frames per step of the stage's first block; 1 keeps all."""
    temporal_kernel_sizes: tuple[PositiveInt, ...] = ()
    """Frames that each block sees at once: one number per block, or one for all."""
    use_self_gating: bool = False
    """Reweight the channels by their mean over the clip (S3D-G)."""


def _blocks(*kernel_sizes: tuple[int, ...]) -> tuple[ResNet3DBlock, ...]:
    return tuple(
        ResNet3DBlock(temporal_kernel_sizes=sizes, use_self_gating=True) for sizes in kernel_sizes
    )


@dataclasses.dataclass
class ResNet3D(hyperparams.Config):
    """3D ResNet (Qian et al. 2020)."""

    model_id: PositiveInt = 50
    """Depth: 50, 101, 152, 200, 270, 300 or 350."""
    stem_type: str = "v0"
    """First layers: `v0` one 7x7 convolution, `v1` three 3x3 ones (ResNet-D)."""
    stem_conv_temporal_kernel_size: PositiveInt = 5
    """Frames that the first convolution sees at once."""
    stem_conv_temporal_stride: PositiveInt = 2
    """Frames per step of the first convolution."""
    stem_pool_temporal_stride: PositiveInt = 2
    """Frames per step of the stem's pooling."""
    block_specs: tuple[ResNet3DBlock, ...] = ()
    """The four stages, in order."""
    stochastic_depth_drop_rate: DropRate = 0.0
    """Chance, 0 to 1, that the last block is skipped in training; earlier ones less."""
    se_ratio: Fraction = 0.0
    """Squeeze-excite width as a share of the block's, 0 to 1; 0 leaves it out."""

    def check(self) -> Iterator[str]:
        if len(self.block_specs) != 4:
            yield f"block_specs must describe the 4 stages, got {len(self.block_specs)}"


@dataclasses.dataclass
class ResNet3D50(ResNet3D):
    """The 50-layer 3D ResNet with temporal kernels in every other block."""

    model_id: PositiveInt = 50
    """Depth; the kernel sizes of block_specs fit 50."""
    block_specs: tuple[ResNet3DBlock, ...] = dataclasses.field(
        default_factory=lambda: _blocks((3, 3, 3), (3, 1, 3, 1), (3, 1, 3, 1, 3, 1), (1, 3, 1))
    )
    """The four stages, in order."""


@dataclasses.dataclass
class ResNet3DRS(ResNet3D):
    """3D ResNet-RS (Du et al. 2021): temporal kernels in the last two stages only."""

    stem_type: str = "v1"
    """First layers: `v0` one 7x7 convolution, `v1` three 3x3 ones (ResNet-D)."""
    block_specs: tuple[ResNet3DBlock, ...] = dataclasses.field(
        default_factory=lambda: _blocks((1,), (1,), (3,), (3,))
    )
    """The four stages, in order."""
    stochastic_depth_drop_rate: DropRate = 0.1
    """Chance, 0 to 1, that the last block is skipped in training; earlier ones less."""
    se_ratio: Fraction = 0.2
    """Squeeze-excite width as a share of the block's, 0 to 1; 0 leaves it out."""


@dataclasses.dataclass
class Backbone3D(hyperparams.OneOfConfig):
    """The video backbone; subclass it and add a field to offer one more."""

    type: str | None = None
    """Key of the backbone; its settings are in the field of the same name."""
    resnet_3d: ResNet3D = dataclasses.field(default_factory=ResNet3D50)
    resnet_3d_rs: ResNet3D = dataclasses.field(default_factory=ResNet3DRS)
