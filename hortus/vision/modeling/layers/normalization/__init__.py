"""Normalisation, and what a model is told about it."""
