"""Backbones: images to features by level. `factory` builds them from a config."""
