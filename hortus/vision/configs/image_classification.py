"""Configs of image classification."""

import dataclasses
from collections.abc import Iterator
from typing import ClassVar

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.hyperparams.bounds import (
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFraction,
    PositiveInt,
)
from hortus.vision.configs import backbones, checks, common, readiness
from hortus.vision.configs.numbers import Classes, DropRate, Pixels

RESIZE_METHODS = (
    "bilinear",
    "bicubic",
    "area",
    "nearest",
    "lanczos3",
    "lanczos5",
    "gaussian",
    "mitchellcubic",
)


@dataclasses.dataclass
class DataConfig(common.DataConfig):
    """Images with one class each, or several."""

    is_training: bool = True
    """Shuffle, repeat and augment."""
    dtype: str = "float32"
    """Type of the images: float32, bfloat16 or float16."""
    shuffle_buffer_size: NonNegativeInt = 10000
    """Examples held ready for shuffling."""
    cycle_length: PositiveInt = 10
    """Files read at the same time."""
    is_multilabel: bool = False
    """An image may have any number of classes; labels are vectors of 0 and 1."""
    aug_rand_hflip: bool = True
    """Mirror half of the training images left to right."""
    aug_crop: bool | None = True
    """Crop at random in training and at the centre in evaluation; otherwise resize only."""
    crop_area_range: tuple[PositiveFraction, PositiveFraction] | None = (0.08, 1.0)
    """Smallest and largest random crop, as a share of the image, 0 to 1."""
    aug_type: common.Augmentation | None = None
    """AutoAugment or RandAugment; null for none."""
    three_augment: bool = False
    """Grey, solarise or blur, one of them per image (DeiT III, Touvron et al. 2022)."""
    color_jitter: Fraction = 0.0
    """Largest change of brightness, contrast and saturation, 0 to 1; 0 turns it off."""
    random_erasing: common.RandomErasing | None = None
    """Noise in a random rectangle; null for none."""
    image_field_key: str = "image/encoded"
    """Record field with the encoded image."""
    label_field_key: str = "image/class/label"
    """Record field with the class, from 0."""
    decode_jpeg_only: bool = hyperparams.inert(
        True, "each image's own bytes tell; of a JPEG, only the crop is decoded"
    )
    mixup_and_cutmix: common.MixupAndCutmix | None = None
    """Mix pairs of a batch; needs losses.soft_labels. Null for none."""
    decoder: common.DataDecoder | None = hyperparams.inert(
        common.DataDecoder(), "image_field_key and label_field_key say what to read"
    )
    aug_policy: str | None = hyperparams.inert(None, "superseded by aug_type")
    randaug_magnitude: NonNegativeInt | None = hyperparams.inert(
        10, "superseded by aug_type.randaug"
    )
    center_crop_fraction: PositiveFraction | None = 0.875
    """Side of the evaluation crop as a share of the shorter image side, 0 to 1."""
    tf_resize_method: str = "bilinear"
    """Interpolation: bilinear, bicubic, area, nearest, lanczos3, lanczos5, gaussian or
    mitchellcubic."""
    repeated_augment: PositiveInt | None = None
    """Differently augmented copies of each image in a batch (Hoffer et al. 2019); null for one."""

    def check(self) -> Iterator[str]:
        yield from super().check()
        yield from checks.rising_range(self, "crop_area_range")
        yield from checks.one_of(self, "tf_resize_method", RESIZE_METHODS)


@dataclasses.dataclass
class ImageClassificationModel(hyperparams.Config):
    """Backbone, global pooling and a dense layer."""

    num_classes: Classes = 0
    """Classes, a background class included where the labels have one."""
    input_size: list[Pixels | None] = dataclasses.field(default_factory=list)
    """Height, width and channels of the images, in pixels."""
    backbone: backbones.Backbone = dataclasses.field(
        default_factory=lambda: backbones.Backbone(type="resnet")
    )
    """The feature extractor."""
    dropout_rate: DropRate = 0.0
    """Share of the pooled features dropped in training, 0 to 1."""
    norm_activation: common.NormActivation = dataclasses.field(
        default_factory=lambda: common.NormActivation(use_sync_bn=False)
    )
    """Batch normalisation and activation."""
    add_head_batch_norm: bool = False
    """Normalise and activate the backbone's features before pooling."""
    kernel_initializer: str = "random_uniform"
    """Keras initializer of the dense layer."""
    output_softmax: bool = False
    """Return probabilities instead of logits."""

    def check(self) -> Iterator[str]:
        yield from checks.length(self, 3, "input_size")


@dataclasses.dataclass
class Losses(hyperparams.Config):
    """The training loss."""

    loss_weight: NonNegativeFloat = 1.0
    """Factor on the whole loss, weight decay aside."""
    one_hot: bool = True
    """Turn class numbers into one-hot vectors, so that they can be smoothed."""
    label_smoothing: Fraction = 0.0
    """Share of the label spread over all classes, 0 to 1; needs one_hot."""
    l2_weight_decay: NonNegativeFloat = 0.0
    """Factor on the sum of squared kernels, halved; 0 turns it off."""
    soft_labels: bool = False
    """Labels are class probabilities already, as mixup and CutMix make them."""
    use_binary_cross_entropy: bool = False
    """One sigmoid per class instead of a softmax."""
    class_weights: list[NonNegativeFloat] | None = None
    """Factor on the loss of each class, for rare ones; null for 1."""


@dataclasses.dataclass
class Evaluation(hyperparams.Config):
    """What is measured."""

    top_k: PositiveInt = 5
    """Also report how often the class is among this many best."""
    precision_and_recall_thresholds: list[Fraction] | None = None
    """Score thresholds, 0 to 1, at which precision and recall are reported; null for none."""
    report_per_class_precision_and_recall: bool = False
    """Report both for each class too."""


@dataclasses.dataclass
class ImageClassificationTask(cfg.TaskConfig):
    """Which class does the image show?"""

    task_module: ClassVar[str] = "hortus.vision.tasks.image_classification"

    model: ImageClassificationModel = dataclasses.field(default_factory=ImageClassificationModel)
    """The model."""
    train_data: DataConfig = dataclasses.field(default_factory=lambda: DataConfig(is_training=True))
    """What it learns from."""
    validation_data: DataConfig = dataclasses.field(
        default_factory=lambda: DataConfig(is_training=False)
    )
    """What it is measured on."""
    losses: Losses = dataclasses.field(default_factory=Losses)
    """The training loss."""
    evaluation: Evaluation = dataclasses.field(default_factory=Evaluation)
    """What is measured."""
    train_input_partition_dims: list[PositiveInt] | None = hyperparams.inert(
        [], "the engines split the batch, never an image, over devices"
    )
    eval_input_partition_dims: list[PositiveInt] | None = hyperparams.inert(
        [], "the engines split the batch, never an image, over devices"
    )
    init_checkpoint: str | None = None  # type: ignore[assignment]
    """Checkpoint, or folder of checkpoints, that the first weights come from; null for none."""
    init_checkpoint_modules: str | list[str] = "all"
    """What to take from init_checkpoint: `all` or `backbone`."""
    model_output_keys: list[NonNegativeInt] | None = hyperparams.inert(
        [], "the model has one output"
    )
    freeze_backbone: bool = False
    """Train the dense layer only."""

    def check(self) -> Iterator[str]:
        yield from super().check()
        if self.get("train_data.mixup_and_cutmix") and not self.get("losses.soft_labels"):
            yield "train_data.mixup_and_cutmix makes soft labels: set losses.soft_labels to true"
        weights = self.get("losses.class_weights")
        if weights is not None and len(weights) != self.get("model.num_classes"):
            count = self.get("model.num_classes")
            yield f"losses.class_weights must have one item per class ({count}), got {len(weights)}"
        if self.get("train_data.is_multilabel") != self.get("validation_data.is_multilabel"):
            yield "train_data.is_multilabel and validation_data.is_multilabel must be equal"
        yield from readiness.channel_problems(self, 3)

    def check_for_run(self, experiment: cfg.ExperimentConfig, mode: str) -> Iterator[str]:
        yield from super().check_for_run(experiment, mode)
        yield from readiness.problems(experiment, mode)
