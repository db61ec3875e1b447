"""Configs of semantic segmentation."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import ClassVar

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.hyperparams.bounds import (
    AnyInt,
    FiniteFloat,
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveFraction,
    PositiveInt,
)
from hortus.vision.configs import backbones, checks, common, decoders, readiness
from hortus.vision.configs.heads import MaskScoringHead, SegmentationHead
from hortus.vision.configs.numbers import Classes, Level, Pixels

__all__ = [
    "DataConfig",
    "DenseFeatureConfig",
    "Evaluation",
    "ExportConfig",
    "Losses",
    "MaskScoringHead",
    "SegmentationHead",
    "SemanticSegmentationModel",
    "SemanticSegmentationTask",
]


@dataclasses.dataclass
class DenseFeatureConfig(hyperparams.Config):
    """An image-like input and how it is normalised: (value - mean) / stddev, per channel.

    The defaults are the statistics of ImageNet, in the range 0 to 255.
    """

    feature_name: str = "image/encoded"
    """Record field with the encoded image."""
    num_channels: PositiveInt = 3
    """Channels of the image."""
    mean: list[FiniteFloat] = dataclasses.field(
        default_factory=lambda: [0.485 * 255, 0.456 * 255, 0.406 * 255]
    )
    """Mean of each channel, 0 to 255."""
    stddev: list[PositiveFloat] = dataclasses.field(
        default_factory=lambda: [0.229 * 255, 0.224 * 255, 0.225 * 255]
    )
    """Standard deviation of each channel, 0 to 255."""

    def check(self) -> Iterator[str]:
        for name in ("mean", "stddev"):
            if len(getattr(self, name)) != self.num_channels:
                yield f"{name} must have num_channels ({self.num_channels}) items"


@dataclasses.dataclass
class DataConfig(common.DataConfig):
    """Images with a class per pixel."""

    image_feature: DenseFeatureConfig = dataclasses.field(default_factory=DenseFeatureConfig)
    """The image itself."""
    output_size: list[Pixels] = dataclasses.field(default_factory=list)
    """Height and width that images are resized to, in pixels; empty for the model's input size."""
    crop_size: list[Pixels] = dataclasses.field(default_factory=list)
    """Height and width of the crop out of the resized image, in pixels; empty for none."""
    input_path: str | Sequence[str] | hyperparams.Config | None = None  # type: ignore[assignment]
    """Files to read: a pattern, several patterns, or a mapping of named ones for a weighted mix;
    the folder of the images, with file_type masks or coco_panoptic."""
    file_type: str = "tfrecord"
    """Format of the files: tfrecord, tfrecord_compressed (GZIP), masks (a folder of images, and one
    of PNG masks with the same names) or coco_panoptic (the same with COCO's JSON file)."""
    mask_path: str | Sequence[str] | hyperparams.Config | None = None
    """Folder of the masks, with file_type masks or coco_panoptic; null for the one where the last
    `images` in input_path is `masks`: images/train has its masks in masks/train."""
    annotation_file: str | None = None
    """COCO's panoptic JSON file, with file_type coco_panoptic."""
    is_training: bool = True
    """Shuffle, repeat and augment."""
    dtype: str = "float32"
    """Type of the images: float32, bfloat16 or float16."""
    shuffle_buffer_size: NonNegativeInt = 1000
    """Examples held ready for shuffling."""
    cycle_length: PositiveInt = 10
    """Files read at the same time."""
    resize_eval_groundtruth: bool = True
    """Measure at output_size; otherwise at the size of each image's own labels."""
    groundtruth_padded_size: list[Pixels] = dataclasses.field(default_factory=list)
    """Height and width, in pixels, that labels are padded to when they are not resized."""
    aug_scale_min: PositiveFloat = 1.0
    """Smallest random scale of a training image, relative to output_size."""
    aug_scale_max: PositiveFloat = 1.0
    """Largest random scale of a training image, relative to output_size."""
    aug_rand_hflip: bool = True
    """Mirror half of the training images left to right."""
    preserve_aspect_ratio: bool = True
    """Scale height and width alike and pad the rest; otherwise stretch to output_size."""
    aug_policy: str | None = None
    """AutoAugment policy that changes colours only, such as panoptic_deeplab_policy; null for
    none."""
    color_jitter: Fraction = 0.0
    """Largest change of brightness, contrast and saturation in training, 0 to 1; 0 turns it off."""
    decoder: common.DataDecoder | None = hyperparams.inert(
        common.DataDecoder(), "image_feature and additional_dense_features say what to read"
    )
    additional_dense_features: list[DenseFeatureConfig] = dataclasses.field(default_factory=list)
    """Further image-like inputs, stacked as channels behind the image."""
    centered_crop: bool = False
    """Crop at the centre instead of at random."""

    def check(self) -> Iterator[str]:
        yield from super().check()
        sizes = ("output_size", "crop_size", "groundtruth_padded_size")
        yield from checks.length(self, 2, *sizes)
        yield from checks.ordered(self, "aug_scale_min", "aug_scale_max")
        if self.file_type == "coco_panoptic" and not self.annotation_file:
            yield "annotation_file must name COCO's JSON file when file_type is coco_panoptic"
        if not (self.is_training or self.resize_eval_groundtruth or self.groundtruth_padded_size):
            yield "groundtruth_padded_size must be set when resize_eval_groundtruth is false"


@dataclasses.dataclass
class SemanticSegmentationModel(hyperparams.Config):
    """Backbone, decoder and a head that classifies pixels."""

    num_classes: Classes = 0
    """Classes, a background class included where the labels have one."""
    input_size: list[Pixels | None] = dataclasses.field(default_factory=list)
    """Height, width and channels of the images, in pixels; null for any height or width."""
    min_level: Level = 3
    """Finest level of a pyramid decoder: 1 pixel per 2^min_level of the input."""
    max_level: Level = 6
    """Coarsest level of a pyramid decoder."""
    head: SegmentationHead = dataclasses.field(default_factory=SegmentationHead)
    """Class of every pixel."""
    backbone: backbones.Backbone = dataclasses.field(
        default_factory=lambda: backbones.Backbone(type="resnet")
    )
    """The feature extractor."""
    decoder: decoders.Decoder = dataclasses.field(
        default_factory=lambda: decoders.Decoder(type="identity")
    )
    """From backbone features to those that the head sees."""
    mask_scoring_head: MaskScoringHead | None = None
    """Also predict how good the mask of each class is; null for no such head."""
    norm_activation: common.NormActivation = dataclasses.field(
        default_factory=common.NormActivation
    )
    """Batch normalisation and activation."""

    def check(self) -> Iterator[str]:
        yield from checks.length(self, 3, "input_size")
        yield from checks.ordered(self, "min_level", "max_level")
        yield from self._level_problems()

    def _level_problems(self) -> Iterator[str]:
        """ASPP has features at one level, which the head must use unless it fuses several."""
        if self.get("decoder.type") != "aspp" or self.get("decoder.aspp.output_tensor"):
            return
        found, wanted = self.get("decoder.aspp.level"), self.get("head.level")
        several = ("pyramid_fusion", "panoptic_fpn_fusion")
        if found != wanted and self.get("head.feature_fusion") not in several:
            yield f"head.level must equal decoder.aspp.level ({found}), got {wanted}"


@dataclasses.dataclass
class Losses(hyperparams.Config):
    """The training loss."""

    loss_weight: NonNegativeFloat = 1.0
    """Factor on the whole loss, weight decay aside."""
    label_smoothing: Fraction = 0.0
    """Share of the label spread over all classes, 0 to 1."""
    ignore_label: AnyInt = 255
    """Label of pixels that count in neither loss nor metrics."""
    gt_is_matting_map: bool = False
    """Labels are opacities, 0 to 255, of one foreground class instead of class numbers."""
    class_weights: list[NonNegativeFloat] = dataclasses.field(default_factory=list)
    """Factor on the loss per class; empty for 1."""
    l2_weight_decay: NonNegativeFloat = 0.0
    """Factor on the sum of squared kernels, halved; 0 turns it off."""
    use_groundtruth_dimension: bool = True
    """Enlarge the logits to the labels' size; otherwise shrink the labels."""
    use_binary_cross_entropy: bool = False
    """One sigmoid per class instead of a softmax."""
    top_k_percent_pixels: PositiveFraction = 1.0
    """Share of the hardest pixels that count, 0 to 1."""
    mask_scoring_weight: NonNegativeFloat = 1.0
    """Factor on the loss of the mask scoring head."""


@dataclasses.dataclass
class Evaluation(hyperparams.Config):
    """What is measured."""

    report_per_class_iou: bool = True
    """Report the IoU of each class beside the mean."""
    report_train_mean_iou: bool = True
    """Measure the mean IoU in training too."""


@dataclasses.dataclass
class ExportConfig(hyperparams.Config):
    """What an exported segmentation model returns."""

    rescale_output: bool = False
    """Resize the prediction to the size of the image that was given."""


@dataclasses.dataclass
class SemanticSegmentationTask(cfg.TaskConfig):
    """Which class does each pixel show?"""

    task_module: ClassVar[str] = "hortus.vision.tasks.semantic_segmentation"

    model: SemanticSegmentationModel = dataclasses.field(default_factory=SemanticSegmentationModel)
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
    train_input_partition_dims: list[PositiveInt] = hyperparams.inert(
        [], "the engines split the batch, never an image, over devices"
    )
    eval_input_partition_dims: list[PositiveInt] = hyperparams.inert(
        [], "the engines split the batch, never an image, over devices"
    )
    init_checkpoint: str | None = None  # type: ignore[assignment]
    """Checkpoint, or folder of checkpoints, that the first weights come from; null for none."""
    init_checkpoint_modules: str | list[str] = "all"
    """What to take from init_checkpoint: `all`, or one or several of backbone and decoder."""
    export_config: ExportConfig = dataclasses.field(default_factory=ExportConfig)
    """What an exported model returns."""
    allow_image_summary: bool = True
    """Write pictures of predictions for TensorBoard at evaluation."""
    freeze_backbone: bool = False
    """Keep the backbone's weights as they are."""

    def check(self) -> Iterator[str]:
        yield from super().check()
        weights, classes = self.get("losses.class_weights"), self.get("model.num_classes")
        count = len(weights or ())
        if weights and classes and count != classes:
            yield f"losses.class_weights must have one item per class ({classes}), got {count}"
        yield from readiness.channel_problems(self, self._channels(), "train_data's features")

    def _channels(self) -> int | None:
        """Channels of the image and of what is stacked behind it."""
        image = self.get("train_data.image_feature.num_channels")
        further = self.get("train_data.additional_dense_features") or ()
        return None if image is None else image + sum(more.num_channels for more in further)

    def check_for_run(self, experiment: cfg.ExperimentConfig, mode: str) -> Iterator[str]:
        yield from super().check_for_run(experiment, mode)
        yield from readiness.problems(experiment, mode)
