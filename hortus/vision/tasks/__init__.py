"""Tasks: what is particular to each learning problem."""

from hortus.vision.tasks import image_classification, maskrcnn, retinanet, semantic_segmentation

__all__ = ["image_classification", "maskrcnn", "retinanet", "semantic_segmentation"]
