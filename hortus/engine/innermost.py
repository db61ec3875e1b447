"""The optimizer that updates the weights, inside of all wrappers."""

from typing import Any


def innermost(optimizer: Any) -> Any:
    """What `optimizer` wraps in the end, Keras' own wrappers included; itself if it is none."""
    while hasattr(optimizer, "inner_optimizer"):
        optimizer = optimizer.inner_optimizer
    return optimizer
