"""Tasks: what is particular to each learning problem."""

from hortus.vision.tasks import image_classification, retinanet

__all__ = ["image_classification", "retinanet"]
