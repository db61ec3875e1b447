"""Configs of the heads: from features to predictions."""

import dataclasses
from collections.abc import Iterator

from hortus import hyperparams
from hortus.hyperparams.bounds import PositiveInt
from hortus.vision.configs import checks
from hortus.vision.configs.numbers import Layers, Level, Pixels, Width


@dataclasses.dataclass
class AttributeHead(hyperparams.Config):
    """An extra prediction per box, beside its class and position."""

    name: str = ""
    """Name of the attribute, as in the decoder's attribute_names."""
    type: str = "regression"
    """`regression` or `classification`."""
    size: PositiveInt = 1
    """Numbers predicted per box: values, or classes."""
    prediction_tower_name: str = ""
    """Heads of one tower name share their convolutions; empty gives the head its own."""
    num_convs: Layers | None = None
    """Convolutions of the tower; null takes RetinaNetHead.num_convs."""
    num_filters: Width | None = None
    """Filters of each convolution; null takes RetinaNetHead.num_filters."""

    def check(self) -> Iterator[str]:
        if not self.name:
            yield "name must not be empty"
        yield from checks.one_of(self, "type", ("regression", "classification"))


@dataclasses.dataclass
class RetinaNetHead(hyperparams.Config):
    """Class and box towers, run on every level (RetinaNet, Lin et al. 2017)."""

    num_convs: Layers = 4
    """Convolutions of each tower."""
    num_filters: Width = 256
    """Filters of each convolution."""
    use_separable_conv: bool = False
    """Depthwise separable convolutions: smaller and faster on mobile devices."""
    attribute_heads: list[AttributeHead] = dataclasses.field(default_factory=list)
    """Further predictions per box."""
    share_classification_heads: bool = False
    """Let classifying attribute heads use the convolutions of the class tower."""
    share_level_convs: bool | None = True
    """The same convolutions for all levels; otherwise each level has its own."""

    def check(self) -> Iterator[str]:
        names = [head.name for head in self.attribute_heads if head is not None]
        if len(set(names)) < len(names):
            yield f"attribute_heads must have different names, got {names}"


@dataclasses.dataclass
class RPNHead(hyperparams.Config):
    """Region proposal network: objectness and box of every anchor (Ren et al. 2015)."""

    num_convs: Layers = 1
    """Convolutions before the two predictions."""
    num_filters: Width = 256
    """Filters of each convolution."""
    use_separable_conv: bool = False
    """Depthwise separable convolutions: smaller and faster on mobile devices."""


@dataclasses.dataclass
class DetectionHead(hyperparams.Config):
    """Second stage of a two-stage detector: class and refined box of every proposal."""

    num_convs: Layers = 4
    """Convolutions before the dense layers."""
    num_filters: Width = 256
    """Filters of each convolution."""
    use_separable_conv: bool = False
    """Depthwise separable convolutions: smaller and faster on mobile devices."""
    num_fcs: Layers = 1
    """Dense layers."""
    fc_dims: Width = 1024
    """Width of each dense layer."""
    class_agnostic_bbox_pred: bool = False
    """One box for all classes instead of one per class; usual in a cascade."""
    cascade_class_ensemble: bool = False
    """Average the class scores of all cascade stages at inference."""


@dataclasses.dataclass
class MaskHead(hyperparams.Config):
    """Mask of every detection (Mask R-CNN, He et al. 2017)."""

    upsample_factor: PositiveInt = 2
    """Mask side as a multiple of mask_roi_aligner.crop_size."""
    num_convs: Layers = 4
    """Convolutions before the upsampling."""
    num_filters: Width = 256
    """Filters of each convolution."""
    use_separable_conv: bool = False
    """Depthwise separable convolutions: smaller and faster on mobile devices."""
    class_agnostic: bool = False
    """One mask for all classes instead of one per class."""


@dataclasses.dataclass
class SegmentationHead(hyperparams.Config):
    """Class of every pixel."""

    level: Level = 3
    """Level of the decoder features that are used: 1 pixel per 2^level of the input."""
    num_convs: Layers = 2
    """Convolutions before the prediction."""
    num_filters: Width = 256
    """Filters of each convolution."""
    use_depthwise_convolution: bool = False
    """Depthwise separable convolutions: smaller and faster."""
    prediction_kernel_size: Pixels = 1
    """Side of the kernel of the last convolution, in pixels."""
    upsample_factor: PositiveInt = 1
    """Factor by which the features are enlarged before the prediction; 1 leaves them."""
    logit_activation: str | None = None
    """Activation of the output, such as sigmoid or softmax; null returns logits."""
    feature_fusion: str | None = None
    """How finer features join: deeplabv3plus, deeplabv3plus_sum_to_merge, pyramid_fusion,
    panoptic_fpn_fusion, or null for none."""
    low_level: Level | str = 2
    """Backbone level that deeplabv3plus fuses; '2/depthwise' names a MobileNet's inner endpoint."""
    low_level_num_filters: Width = 48
    """Filters that the low-level features are reduced to."""
    decoder_min_level: Level | str | None = None
    """Finest decoder level of panoptic_fpn_fusion."""
    decoder_max_level: Level | str | None = None
    """Coarsest decoder level of panoptic_fpn_fusion."""

    def check(self) -> Iterator[str]:
        fusions = (
            None,
            "deeplabv3plus",
            "deeplabv3plus_sum_to_merge",
            "pyramid_fusion",
            "panoptic_fpn_fusion",
        )
        yield from checks.one_of(self, "feature_fusion", fusions)
        if self.feature_fusion == "panoptic_fpn_fusion":
            for name in ("decoder_min_level", "decoder_max_level"):
                if getattr(self, name) is None:
                    yield f"{name} must be set for feature_fusion panoptic_fpn_fusion"


@dataclasses.dataclass
class MaskScoringHead(hyperparams.Config):
    """Predicts the IoU of each class's predicted mask (Mask Scoring R-CNN, Huang et al. 2019)."""

    num_convs: Layers = 4
    """Convolutions before the dense layers."""
    num_filters: Width = 128
    """Filters of each convolution."""
    fc_input_size: list[Pixels] = dataclasses.field(default_factory=list)
    """Height and width that the features are resized to before the dense layers."""
    num_fcs: Layers = 2
    """Dense layers."""
    fc_dims: Width = 1024
    """Width of each dense layer."""
    use_depthwise_convolution: bool = False
    """Depthwise separable convolutions: smaller and faster."""

    def check(self) -> Iterator[str]:
        if len(self.fc_input_size) != 2:
            yield f"fc_input_size must be [height, width], got {self.fc_input_size}"
