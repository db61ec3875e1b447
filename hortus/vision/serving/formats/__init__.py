"""Formats that models are exported to: how each is written, and how it is run."""
