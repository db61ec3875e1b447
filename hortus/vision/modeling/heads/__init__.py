"""Heads: features to predictions. `factory` builds them from a config."""

from hortus.vision.modeling.heads import factory
from hortus.vision.modeling.heads.detection_head import DetectionHead
from hortus.vision.modeling.heads.mask_head import MaskHead
from hortus.vision.modeling.heads.mask_scoring import MaskScoring
from hortus.vision.modeling.heads.retinanet_head import RetinaNetHead
from hortus.vision.modeling.heads.rpn_head import RPNHead
from hortus.vision.modeling.heads.segmentation_head import SegmentationHead

__all__ = [
    "DetectionHead",
    "MaskHead",
    "MaskScoring",
    "RPNHead",
    "RetinaNetHead",
    "SegmentationHead",
    "factory",
]
