"""Settings and experiments. Nothing here loads a numerical library."""

import dataclasses
from collections.abc import Iterator

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory
from hortus.vision.configs import backbones, checks, common


@dataclasses.dataclass
class PlainNet(hyperparams.Config):
    """Our backbone: two convolutions per level."""

    widths: list[hyperparams.PositiveInt] = dataclasses.field(default_factory=lambda: [32, 64, 128])
    """Channels of each level, from level 1 on."""


@dataclasses.dataclass
class Backbone(backbones.Backbone):
    """The backbones of hortus, and ours."""

    type: str = "plain"
    plain: PlainNet = dataclasses.field(default_factory=PlainNet)


@dataclasses.dataclass
class Model(hyperparams.Config):
    """A backbone and a dense layer."""

    num_classes: int = 0
    """Classes, as many as the data has sub-folders."""
    input_size: list[int] = dataclasses.field(default_factory=lambda: [96, 96, 3])
    """Height, width and channels of the images, in pixels."""
    backbone: Backbone = dataclasses.field(default_factory=Backbone)
    """The feature extractor."""
    norm_activation: common.NormActivation = dataclasses.field(
        default_factory=lambda: common.NormActivation(norm_momentum=0.9)
    )
    """Batch normalisation and activation."""
    dropout_rate: hyperparams.Fraction = 0.1
    """Share of the pooled features dropped in training, 0 to 1."""

    def check(self) -> Iterator[str]:
        yield from checks.length(self, 3, "input_size")


@dataclasses.dataclass
class DataConfig(cfg.DataConfig):
    """A folder of images, one sub-folder per class."""

    crop_area_range: tuple[hyperparams.Fraction, hyperparams.Fraction] = (0.5, 1.0)
    """Smallest and largest random crop in training, as a share of the image, 0 to 1."""
    brightness: hyperparams.Fraction = 0.1
    """Largest change of brightness in training, 0 to 1."""


@dataclasses.dataclass
class Losses(hyperparams.Config):
    """The training loss."""

    label_smoothing: float = 0.05
    """Share of the label spread over all classes, 0 to 1."""
    l2_weight_decay: float = 1e-4
    """Factor on the sum of squared kernels, halved."""


@dataclasses.dataclass
class StarterTask(cfg.TaskConfig):
    """Which class does the image show?"""

    model: Model = dataclasses.field(default_factory=Model)
    train_data: DataConfig = dataclasses.field(default_factory=lambda: DataConfig(is_training=True))
    validation_data: DataConfig = dataclasses.field(
        default_factory=lambda: DataConfig(is_training=False, drop_remainder=False)
    )
    losses: Losses = dataclasses.field(default_factory=Losses)


@exp_factory.register_config_factory("starter")
def starter() -> cfg.ExperimentConfig:
    """Tells images apart with a backbone and a task of our own."""
    return cfg.ExperimentConfig(
        task=StarterTask(),
        trainer=cfg.TrainerConfig(
            train_steps=2000,
            steps_per_loop=100,
            summary_interval=100,
            validation_interval=500,
            checkpoint_interval=500,
            optimizer_config={
                "optimizer": {"type": "adamw_experimental"},
                "learning_rate": {"type": "cosine", "cosine": {"decay_steps": 2000}},
            },
        ),
        restrictions=[
            "task.train_data.is_training == True",
            "task.validation_data.is_training == False",
        ],
    )
