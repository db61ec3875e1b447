"""The registered recipes of the vision tasks; importing this package registers them."""

from hortus.vision.experiments import (
    image_classification,
    maskrcnn,
    retinanet,
    semantic_segmentation,
    video_classification,
)

__all__ = [
    "image_classification",
    "maskrcnn",
    "retinanet",
    "semantic_segmentation",
    "video_classification",
]
