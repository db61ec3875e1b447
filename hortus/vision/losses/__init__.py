"""Losses, as functions and classes on keras.ops."""
