"""Configs of Faster, Mask and Cascade R-CNN, the two-stage detectors."""

import dataclasses
from collections.abc import Iterator
from typing import Annotated, ClassVar

from hortus import hyperparams
from hortus.hyperparams.bounds import (
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    also,
    ge,
)
from hortus.vision.configs import checks, common, decoders, detection
from hortus.vision.configs.heads import DetectionHead, MaskHead, RPNHead
from hortus.vision.configs.numbers import Boxes, Level, Pixels

__all__ = [
    "Anchor",
    "CopyPaste",
    "DataConfig",
    "DetectionGenerator",
    "DetectionHead",
    "Losses",
    "MaskHead",
    "MaskRCNN",
    "MaskRCNNTask",
    "MaskROIAligner",
    "MaskSampler",
    "Parser",
    "ROIAligner",
    "ROIGenerator",
    "ROISampler",
    "RPNHead",
]

_MATCHED_ELSEWHERE = "rpn_match_threshold and model.roi_sampler say what matches"


@dataclasses.dataclass
class CopyPaste(hyperparams.Config):
    """Objects of another training image, pasted by their masks (Ghiasi et al. 2021)."""

    probability: Fraction = 0.5
    """Share of the training images that objects are pasted into, 0 to 1."""
    object_probability: Fraction = 0.5
    """Chance, 0 to 1, of each object of the other image to be pasted."""
    scale_min: PositiveFloat = 0.5
    """Smallest random scale of the other image, relative to the model's input size."""
    scale_max: PositiveFloat = 1.5
    """Largest random scale of the other image, relative to the model's input size."""
    min_visible: Fraction = 0.2
    """Objects that show less than this share of themselves after that, 0 to 1, are dropped."""

    def check(self) -> Iterator[str]:
        yield from checks.ordered(self, "scale_min", "scale_max")


@dataclasses.dataclass
class Parser(detection.Parser):
    """From a decoded image with its boxes and masks to a training example."""

    match_threshold: Fraction = hyperparams.inert(0.5, _MATCHED_ELSEWHERE)
    unmatched_threshold: Fraction = hyperparams.inert(0.5, _MATCHED_ELSEWHERE)
    rpn_match_threshold: Fraction = 0.7
    """Anchors that overlap an object by at least this IoU, 0 to 1, must propose it."""
    rpn_unmatched_threshold: Fraction = 0.3
    """Anchors that overlap no object by this IoU, 0 to 1, are background; those between this and
    rpn_match_threshold do not count."""
    rpn_batch_size_per_im: Boxes = 256
    """Anchors per image that enter the proposal loss."""
    rpn_fg_fraction: Fraction = 0.5
    """Largest share of objects among them, 0 to 1."""
    mask_crop_size: Pixels = 112
    """Side of the object masks in a batch, in samples: each covers the box of its object."""
    max_mask_bytes: PositiveInt = 65536
    """Most bytes that the exact masks of one validation image may take, run-length encoded, where
    the data is records or TensorFlow Datasets. Files of annotations are looked through instead."""
    copy_paste: CopyPaste | None = None
    """Paste objects of another training image, which needs masks, and files of annotations rather
    than records; null for none."""

    def check(self) -> Iterator[str]:
        yield from super().check()
        yield from checks.ordered(self, "rpn_unmatched_threshold", "rpn_match_threshold")


@dataclasses.dataclass
class DataConfig(detection.DataConfig):
    """Images with boxes, classes and masks."""

    parser: Parser = dataclasses.field(default_factory=Parser)
    """Resizing, augmentation and matching."""
    num_examples: Annotated[NonNegativeInt, also(-1)] = -1
    """Images in the set, where something has to know; -1 for unknown."""


@dataclasses.dataclass
class Anchor(detection.Anchor):
    """The boxes that proposals start from, at every pixel of every level."""

    num_scales: PositiveInt = 1
    """Sizes per level, spread evenly over one octave."""
    anchor_size: PositiveFloat = 8.0
    """Side of the smallest square box, in strides of its level."""


@dataclasses.dataclass
class ROIGenerator(hyperparams.Config):
    """From scored anchors to proposals; the `test_` fields count outside of training."""

    pre_nms_top_k: Boxes = 2000
    """Best anchors per level that enter NMS."""
    pre_nms_score_threshold: Fraction = 0.0
    """Anchors scored below, 0 to 1, do not enter NMS."""
    pre_nms_min_size_threshold: NonNegativeFloat = 0.0
    """Boxes with a shorter side, in pixels, do not enter NMS."""
    nms_iou_threshold: Fraction = 0.7
    """Boxes that overlap a better one by more than this IoU, 0 to 1, are dropped."""
    num_proposals: Boxes = 1000
    """Most proposals per image."""
    test_pre_nms_top_k: Boxes = 1000
    """Best anchors per level that enter NMS, at evaluation."""
    test_pre_nms_score_threshold: Fraction = 0.0
    """Anchors scored below, 0 to 1, do not enter NMS, at evaluation."""
    test_pre_nms_min_size_threshold: NonNegativeFloat = 0.0
    """Boxes with a shorter side, in pixels, do not enter NMS, at evaluation."""
    test_nms_iou_threshold: Fraction = 0.7
    """Boxes that overlap a better one by more than this IoU, 0 to 1, are dropped, at evaluation."""
    test_num_proposals: Boxes = 1000
    """Most proposals per image, at evaluation."""
    use_batched_nms: bool = False
    """Run NMS on all images of a batch in one operation."""


@dataclasses.dataclass
class ROISampler(hyperparams.Config):
    """Which proposals the second stage learns from."""

    mix_gt_boxes: bool = True
    """Add the true boxes to the proposals."""
    num_sampled_rois: Boxes = 512
    """Proposals per image."""
    foreground_fraction: Fraction = 0.25
    """Largest share of objects among them, 0 to 1."""
    foreground_iou_threshold: Fraction = 0.5
    """Proposals that overlap an object by at least this IoU, 0 to 1, are that object."""
    background_iou_high_threshold: Fraction = 0.5
    """Proposals that overlap no object by this IoU, 0 to 1, are background."""
    background_iou_low_threshold: Fraction = 0.0
    """Proposals that overlap every object by less than this IoU, 0 to 1, do not count."""
    cascade_iou_thresholds: list[Fraction] | None = None
    """Foreground IoU, 0 to 1, of each further stage of a cascade, such as [0.6, 0.7] (Cai and
    Vasconcelos 2017); null for a single stage."""

    def check(self) -> Iterator[str]:
        yield from checks.ordered(
            self, "background_iou_low_threshold", "background_iou_high_threshold"
        )


@dataclasses.dataclass
class ROIAligner(hyperparams.Config):
    """Cuts a proposal's features out of the level that fits its size."""

    crop_size: Pixels = 7
    """Side of the cut-out, in feature pixels."""
    sample_offset: Fraction = 0.5
    """Place of a sample in its cell, 0 to 1; 0.5 is the middle."""


@dataclasses.dataclass
class DetectionGenerator(detection.DetectionGenerator):
    """From the second stage's output to detections."""

    use_sigmoid_probability: bool = False
    """One sigmoid per class instead of a softmax; fits frcnn_class_use_binary_cross_entropy."""


@dataclasses.dataclass
class MaskSampler(hyperparams.Config):
    """Which proposals the mask head learns from."""

    num_sampled_masks: Boxes = 128
    """Proposals per image."""


@dataclasses.dataclass
class MaskROIAligner(ROIAligner):
    """Cuts a detection's features out for its mask."""

    crop_size: Pixels = 14
    """Side of the cut-out, in feature pixels."""


@dataclasses.dataclass
class MaskRCNN(detection.DetectionModel):
    """Faster R-CNN (Ren et al. 2015), with masks (He et al. 2017), optionally as a cascade."""

    min_level: Level = 2
    """Finest feature level that is searched: 1 pixel per 2^min_level of the input."""
    max_level: Level = 6
    """Coarsest feature level that is searched."""
    anchor: Anchor = dataclasses.field(default_factory=Anchor)
    """The boxes that proposals start from."""
    include_mask: bool = True
    """Predict masks; without, it is Faster R-CNN."""
    outer_boxes_scale: Annotated[float, ge(1)] = 1.0
    """Masks cover the box enlarged by this factor; 1 or more."""
    decoder: decoders.Decoder = dataclasses.field(
        default_factory=lambda: decoders.Decoder(type="fpn")
    )
    """From backbone features to those of min_level to max_level."""
    rpn_head: RPNHead = dataclasses.field(default_factory=RPNHead)
    """Objectness and box of every anchor."""
    detection_head: DetectionHead = dataclasses.field(default_factory=DetectionHead)
    """Class and box of every proposal."""
    roi_generator: ROIGenerator = dataclasses.field(default_factory=ROIGenerator)
    """From scored anchors to proposals."""
    roi_sampler: ROISampler = dataclasses.field(default_factory=ROISampler)
    """Which proposals the second stage learns from."""
    roi_aligner: ROIAligner = dataclasses.field(default_factory=ROIAligner)
    """Features of a proposal."""
    detection_generator: DetectionGenerator = dataclasses.field(default_factory=DetectionGenerator)
    """Non-maximum suppression."""
    mask_head: MaskHead | None = dataclasses.field(default_factory=MaskHead)
    """Mask of every detection; null with include_mask off."""
    mask_sampler: MaskSampler | None = dataclasses.field(default_factory=MaskSampler)
    """Which proposals the mask head learns from; null with include_mask off."""
    mask_roi_aligner: MaskROIAligner | None = dataclasses.field(default_factory=MaskROIAligner)
    """Features of a mask; null with include_mask off."""
    norm_activation: common.NormActivation = dataclasses.field(
        default_factory=lambda: common.NormActivation(norm_momentum=0.997, norm_epsilon=0.0001)
    )
    """Batch normalisation and activation."""

    @property
    def learns_masks(self) -> bool:
        return self.include_mask

    def check(self) -> Iterator[str]:
        yield from super().check()
        if self.include_mask:
            for name in ("mask_head", "mask_sampler", "mask_roi_aligner"):
                if getattr(self, name) is None:
                    yield f"{name} must be set when include_mask is true"


@dataclasses.dataclass
class Losses(hyperparams.Config):
    """The training loss."""

    loss_weight: NonNegativeFloat = 1.0
    """Factor on the whole loss, weight decay aside."""
    rpn_huber_loss_delta: PositiveFloat = 1 / 9
    """Proposal box error above which the loss grows linearly, in box coder units."""
    frcnn_huber_loss_delta: PositiveFloat = 1.0
    """Second stage box error above which the loss grows linearly, in box coder units."""
    frcnn_class_use_binary_cross_entropy: bool = False
    """One sigmoid per class instead of a softmax in the second stage."""
    frcnn_class_loss_top_k_percent: Fraction = 1.0
    """Share of the hardest proposals that the class loss counts, 0 to 1."""
    l2_weight_decay: NonNegativeFloat = 0.0
    """Factor on the sum of squared kernels, halved; 0 turns it off."""
    rpn_score_weight: NonNegativeFloat = 1.0
    """Factor on the objectness loss of the proposals."""
    rpn_box_weight: NonNegativeFloat = 1.0
    """Factor on the box loss of the proposals."""
    frcnn_class_weight: NonNegativeFloat = 1.0
    """Factor on the class loss of the second stage."""
    frcnn_box_weight: NonNegativeFloat = 1.0
    """Factor on the box loss of the second stage."""
    mask_weight: NonNegativeFloat = 1.0
    """Factor on the mask loss."""
    class_weights: list[NonNegativeFloat] | None = None
    """Factor on the class loss per class, background first; null for 1."""


@dataclasses.dataclass
class MaskRCNNTask(detection.DetectionTask):
    """Which objects are where, and which pixels are theirs? In two stages."""

    task_module: ClassVar[str] = "hortus.vision.tasks.maskrcnn"

    model: MaskRCNN = dataclasses.field(default_factory=MaskRCNN)
    """The model."""
    train_data: DataConfig = dataclasses.field(default_factory=lambda: DataConfig(is_training=True))
    """What it learns from."""
    validation_data: DataConfig = dataclasses.field(
        default_factory=lambda: DataConfig(is_training=False, drop_remainder=False)
    )
    """What it is measured on."""
    losses: Losses = dataclasses.field(default_factory=Losses)
    """The training loss."""
    allowed_mask_class_ids: list[NonNegativeInt] | None = None
    """Classes whose masks count in the loss, where only some have them; null for all."""
    use_approx_instance_metrics: bool = False
    """Also measure a fast approximation of average precision on the device."""

    def check(self) -> Iterator[str]:
        yield from super().check()
        weights, classes = self.get("losses.class_weights"), self.get("model.num_classes")
        count = len(weights or ())
        if weights and classes and count != classes:
            yield f"losses.class_weights must have one item per class ({classes}), got {count}"
