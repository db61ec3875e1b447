"""Layers and blocks that models are built from, one per module."""
