"""Backbones: images to features by level. `factory` builds them from a config."""

from hortus.vision.modeling.backbones import factory

__all__ = ["factory"]
