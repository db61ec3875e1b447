"""Metrics and evaluators."""
