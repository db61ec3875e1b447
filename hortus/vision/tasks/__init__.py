"""Tasks: what is particular to each learning problem."""

from hortus.vision.tasks import image_classification

__all__ = ["image_classification"]
