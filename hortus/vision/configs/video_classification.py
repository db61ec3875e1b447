"""Configs of video classification."""

import dataclasses
from collections.abc import Iterator
from typing import Annotated

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.hyperparams.bounds import (
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    also,
    ge,
    le,
)
from hortus.vision.configs import backbones_3d, checks, common, readiness
from hortus.vision.configs.numbers import DropRate, Pixels


@dataclasses.dataclass
class DataConfig(common.DataConfig):
    """Clips with one class each, or several."""

    name: str | None = None
    """Name of the data set, for logs and reports; it does not choose the data."""
    file_type: str | None = "tfrecord"  # type: ignore[assignment]
    """Format of the files: tfrecord or tfrecord_compressed (GZIP)."""
    compressed_input: bool = False
    """The files are GZIP-compressed, as with file_type tfrecord_compressed."""
    split: str = "train"
    """Name of the split, for logs and reports; input_path or tfds_split choose the data."""
    variant_name: str | None = None
    """Variant of the data set, for logs and reports."""
    feature_shape: tuple[PositiveInt, ...] = (64, 224, 224, 3)
    """Frames, height, width and channels of a clip."""
    temporal_stride: PositiveInt = 1
    """Take every n-th frame."""
    random_stride_range: NonNegativeInt = 0
    """Change temporal_stride in training by up to this many frames, either way."""
    num_test_clips: PositiveInt = 1
    """Clips per video at evaluation, spread evenly; their scores are averaged."""
    num_test_crops: PositiveInt = 1
    """Crops per clip at evaluation, 1 or 3; their scores are averaged."""
    num_classes: Annotated[NonNegativeInt, also(-1)] = -1
    """Classes; the model's output has this width."""
    num_examples: Annotated[NonNegativeInt, also(-1)] = -1
    """Clips in the split, where something has to know; -1 for unknown."""
    global_batch_size: Annotated[int, ge(0), le(1_000_000)] = 128
    """Examples per step over all replicas together."""
    data_format: str = hyperparams.inert("channels_last", "clips are channels_last on every engine")
    dtype: str = "float32"
    """Type of the frames: float32, bfloat16 or float16."""
    label_dtype: str = "int32"
    """Type of the labels."""
    one_hot: bool = True
    """Turn class numbers into one-hot vectors; losses.one_hot must say the same."""
    shuffle_buffer_size: NonNegativeInt = 64
    """Examples held ready for shuffling."""
    cache: bool = False
    """Whether decoded examples stay in memory after the first pass. The set has to fit."""
    input_path: str | hyperparams.Config = ""
    """File pattern of the records, or a mapping of named ones for a weighted mix."""
    is_training: bool = True
    """Shuffle, repeat and augment."""
    cycle_length: PositiveInt = 10
    """Files read at the same time."""
    drop_remainder: bool = True
    """Whether a last batch that is not full is left out."""
    min_image_size: Pixels = 256
    """Shorter side that frames are resized to before the crop, in pixels."""
    zero_centering_image: bool = False
    """Scale pixels to -1 to 1 instead of 0 to 1."""
    is_multilabel: bool = False
    """A clip may have any number of classes; labels are vectors of 0 and 1."""
    output_audio: bool = False
    """Also read the sound."""
    audio_feature: str = ""
    """Record field with the sound."""
    audio_feature_shape: tuple[Annotated[PositiveInt, also(-1)], ...] = (-1,)
    """Shape of the sound."""
    aug_min_aspect_ratio: PositiveFloat = 0.5
    """Smallest width / height of a random crop."""
    aug_max_aspect_ratio: PositiveFloat = 2.0
    """Largest width / height of a random crop."""
    aug_min_area_ratio: Fraction = 0.49
    """Smallest random crop, as a share of the frame, 0 to 1."""
    aug_max_area_ratio: Fraction = 1.0
    """Largest random crop, as a share of the frame, 0 to 1."""
    aug_random_rotation: bool = False
    """Turn training clips by a random multiple of 90 degrees."""
    aug_type: common.Augmentation | None = None
    """AutoAugment or RandAugment; null for none."""
    mixup_and_cutmix: common.MixupAndCutmix | None = None
    """Mix pairs of a batch; needs one_hot. Null for none."""
    image_field_key: str = "image/encoded"
    """Record field with the encoded frames."""
    label_field_key: str = "clip/label/index"
    """Record field with the class, from 0."""
    input_image_format: str = "jpeg"
    """Encoding of the frames: jpeg or png."""

    def check(self) -> Iterator[str]:
        yield from super().check()
        yield from checks.length(self, 4, "feature_shape")
        yield from checks.ordered(self, "aug_min_aspect_ratio", "aug_max_aspect_ratio")
        yield from checks.ordered(self, "aug_min_area_ratio", "aug_max_area_ratio")
        if self.output_audio and not self.audio_feature:
            yield "audio_feature must be set when output_audio is true"


@dataclasses.dataclass
class VideoClassificationModel(hyperparams.Config):
    """3D backbone, global pooling and a dense layer."""

    model_type: str = "video_classification"
    """Key of the model."""
    backbone: backbones_3d.Backbone3D = dataclasses.field(
        default_factory=lambda: backbones_3d.Backbone3D(type="resnet_3d")
    )
    """The feature extractor."""
    norm_activation: common.NormActivation = dataclasses.field(
        default_factory=lambda: common.NormActivation(use_sync_bn=False)
    )
    """Batch normalisation and activation."""
    dropout_rate: DropRate = 0.2
    """Share of the pooled features dropped in training, 0 to 1."""
    aggregate_endpoints: bool = False
    """Pool the features of all levels and join them, instead of the last one's only."""
    require_endpoints: tuple[str, ...] | None = None
    """Levels to join, with aggregate_endpoints; null for all."""


@dataclasses.dataclass
class Losses(hyperparams.Config):
    """The training loss."""

    one_hot: bool = True
    """Labels are one-hot vectors; train_data.one_hot must say the same."""
    label_smoothing: Fraction = 0.0
    """Share of the label spread over all classes, 0 to 1; needs one_hot."""
    l2_weight_decay: NonNegativeFloat = 0.0
    """Factor on the sum of squared kernels, halved; 0 turns it off."""


@dataclasses.dataclass
class Metrics(hyperparams.Config):
    """What is measured beside accuracy."""

    use_per_class_recall: bool = False
    """Report the recall of each class."""


@dataclasses.dataclass
class VideoClassificationTask(cfg.TaskConfig):
    """Which class does the clip show?"""

    model: VideoClassificationModel = dataclasses.field(default_factory=VideoClassificationModel)
    """The model."""
    train_data: DataConfig = dataclasses.field(
        default_factory=lambda: DataConfig(is_training=True, drop_remainder=True)
    )
    """What it learns from."""
    validation_data: DataConfig = dataclasses.field(
        default_factory=lambda: DataConfig(is_training=False, drop_remainder=False)
    )
    """What it is measured on."""
    losses: Losses = dataclasses.field(default_factory=Losses)
    """The training loss."""
    metrics: Metrics = dataclasses.field(default_factory=Metrics)
    """What is measured beside accuracy."""
    init_checkpoint: str | None = None  # type: ignore[assignment]
    """Checkpoint, or folder of checkpoints, that the first weights come from; null for none."""
    init_checkpoint_modules: str | list[str] = "all"
    """What to take from init_checkpoint: `all` or `backbone`."""
    freeze_backbone: bool = False
    """Train the dense layer only."""
    train_input_partition_dims: tuple[PositiveInt, ...] | None = hyperparams.inert(
        None, "the engines split the batch, never a clip, over devices"
    )
    eval_input_partition_dims: tuple[PositiveInt, ...] | None = hyperparams.inert(
        None, "the engines split the batch, never a clip, over devices"
    )

    def check(self) -> Iterator[str]:
        yield from super().check()
        if self.get("losses.one_hot") != self.get("train_data.one_hot"):
            yield "losses.one_hot and train_data.one_hot must be equal"

    def check_for_run(self, experiment: cfg.ExperimentConfig, mode: str) -> Iterator[str]:
        yield from super().check_for_run(experiment, mode)
        yield from readiness.problems(experiment, mode)
