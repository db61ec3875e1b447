"""Decoders: features of a backbone to those that heads see. `factory` builds them from a config."""

from hortus.vision.modeling.decoders import factory

__all__ = ["factory"]
