"""Attention and what transformers add to it."""
