"""Configs of RetinaNet, the one-stage detector (Lin et al. 2017)."""

import dataclasses
from collections.abc import Iterator
from typing import ClassVar

from hortus import hyperparams
from hortus.hyperparams.bounds import Fraction, NonNegativeFloat, PositiveFloat
from hortus.vision.configs import checks, common, decoders, detection
from hortus.vision.configs.common import (  # part of this module's interface
    DataDecoder,
    TfExampleDecoder,
    TfExampleDecoderLabelMap,
)
from hortus.vision.configs.detection import Anchor
from hortus.vision.configs.heads import AttributeHead, RetinaNetHead
from hortus.vision.configs.numbers import Boxes

__all__ = [
    "Anchor",
    "AttributeHead",
    "DataConfig",
    "DataDecoder",
    "DetectionGenerator",
    "ExportConfig",
    "Losses",
    "Parser",
    "RetinaNet",
    "RetinaNetHead",
    "RetinaNetTask",
    "TfExampleDecoder",
    "TfExampleDecoderLabelMap",
]


@dataclasses.dataclass
class Parser(detection.Parser):
    """From a decoded image with its boxes to a training example."""

    match_threshold: Fraction = 0.5
    """Anchors that overlap an object by at least this IoU, 0 to 1, must find it."""
    unmatched_threshold: Fraction = 0.5
    """Anchors that overlap no object by this IoU, 0 to 1, are background; those between this and
    match_threshold do not count."""
    aug_rand_jpeg: common.RandJpegQuality | None = None
    """Random JPEG artefacts; null for none."""
    aug_policy: str | None = hyperparams.inert(None, "superseded by aug_type")

    def check(self) -> Iterator[str]:
        yield from super().check()
        yield from checks.ordered(self, "unmatched_threshold", "match_threshold")


@dataclasses.dataclass
class DataConfig(detection.DataConfig):
    """Images with boxes and classes."""

    parser: Parser = dataclasses.field(default_factory=Parser)
    """Resizing, augmentation and matching."""


@dataclasses.dataclass
class Losses(hyperparams.Config):
    """The training loss."""

    loss_weight: NonNegativeFloat = 1.0
    """Factor on the whole loss, weight decay aside."""
    focal_loss_alpha: Fraction = 0.25
    """Weight of objects against background in the focal loss, 0 to 1."""
    focal_loss_gamma: NonNegativeFloat = 1.5
    """How much the focal loss turns away from easy examples; 0 is cross entropy."""
    huber_loss_delta: PositiveFloat = 0.1
    """Box error above which the loss grows linearly, in box coder units."""
    box_loss_weight: NonNegativeFloat = 50.0
    """Factor on the box loss, relative to the class loss."""
    l2_weight_decay: NonNegativeFloat = 0.0
    """Factor on the sum of squared kernels, halved; 0 turns it off."""


@dataclasses.dataclass
class DetectionGenerator(detection.DetectionGenerator):
    """From the head's raw output to detections."""

    decode_boxes: bool = True
    """With apply_nms off: return boxes in pixels; otherwise the raw output."""
    tflite_post_processing: common.TFLitePostProcessingConfig = dataclasses.field(
        default_factory=common.TFLitePostProcessingConfig
    )
    """Settings of `nms_version: tflite`."""
    return_decoded: bool | None = None
    """Return all decoded boxes beside the detections."""
    use_class_agnostic_nms: bool | None = False
    """A box suppresses overlapping ones of all classes, not only of its own."""
    box_coder_weights: list[PositiveFloat] | None = None
    """Scales of the box coder for y, x, height and width, such as [10, 10, 5, 5]; null for 1."""

    def check(self) -> Iterator[str]:
        yield from super().check()
        yield from checks.length(self, 4, "box_coder_weights")


@dataclasses.dataclass
class RetinaNet(detection.DetectionModel):
    """Backbone, decoder and a head that is run on every level."""

    decoder: decoders.Decoder = dataclasses.field(
        default_factory=lambda: decoders.Decoder(type="fpn")
    )
    """From backbone features to those of min_level to max_level."""
    head: RetinaNetHead = dataclasses.field(default_factory=RetinaNetHead)
    """Class and box of every anchor."""
    detection_generator: DetectionGenerator = dataclasses.field(default_factory=DetectionGenerator)
    """Non-maximum suppression."""
    norm_activation: common.NormActivation = dataclasses.field(
        default_factory=common.NormActivation
    )
    """Batch normalisation and activation."""


@dataclasses.dataclass
class ExportConfig(hyperparams.Config):
    """What an exported detector returns."""

    output_normalized_coordinates: bool = False
    """Boxes as shares of the image size instead of pixels."""
    cast_num_detections_to_float: bool = False
    """The number of detections as a float, as some runtimes want it."""
    cast_detection_classes_to_float: bool = False
    """The classes as floats, as some runtimes want them."""
    output_intermediate_features: bool = False
    """Also the features of backbone and decoder."""


@dataclasses.dataclass
class RetinaNetTask(detection.DetectionTask):
    """Which objects are where? In one stage."""

    task_module: ClassVar[str] = "hortus.vision.tasks.retinanet"

    model: RetinaNet = dataclasses.field(default_factory=RetinaNet)
    """The model."""
    train_data: DataConfig = dataclasses.field(default_factory=lambda: DataConfig(is_training=True))
    """What it learns from."""
    validation_data: DataConfig = dataclasses.field(
        default_factory=lambda: DataConfig(is_training=False)
    )
    """What it is measured on."""
    losses: Losses = dataclasses.field(default_factory=Losses)
    """The training loss."""
    export_config: ExportConfig = dataclasses.field(default_factory=ExportConfig)
    """What an exported model returns."""
    max_num_eval_detections: Boxes = 100
    """Most detections per image that COCO metrics count."""
    use_approx_instance_metrics: bool = False
    """Also measure a fast approximation of average precision on the device."""
