"""Gradient accumulation: what both engines share."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


class GradientCollector:
    """Stands in for an optimizer while the parts of a batch are worked off: keeps, not applies."""

    def __init__(self, optimizer: Any):
        self._optimizer = optimizer
        self._taken: tuple[list[Any], list[Any]] | None = None

    @property  # type: ignore[misc]  # a step may ask `isinstance(optimizer, LossScaleOptimizer)`
    def __class__(self) -> type:
        return type(self._optimizer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)

    def apply_gradients(self, grads_and_vars: Any) -> None:
        grads, variables = zip(*grads_and_vars, strict=True)
        self.apply(grads, variables)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
        if self._taken is not None:
            raise RuntimeError("with gradient accumulation a step can apply gradients only once")
        dense = [None if grad is None else ops.convert_to_tensor(grad) for grad in grads]
        self._taken = dense, list(trainable_variables)

    def take(self) -> tuple[list[Any], list[Any]]:
        """The gradients, None left out, and their variables; the next step may collect anew."""
        if self._taken is None:
            raise RuntimeError("with gradient accumulation a step has to apply gradients")
        (grads, variables), self._taken = self._taken, None
        pairs = [(g, v) for g, v in zip(grads, variables, strict=True) if g is not None]
        return [grad for grad, _ in pairs], [variable for _, variable in pairs]


def part(batch: Any, index: Any, count: int) -> Any:
    """Part `index` of `count`: every `count`-th example, so that replicas keep their share."""

    def take(leaf: Any) -> Any:
        if len(leaf.shape) == 0:
            return leaf
        size = leaf.shape[0]
        if size is not None and size % count:
            raise ValueError(
                f"a batch of {size} examples per device cannot be cut into {count} parts: make it "
                "a multiple of trainer.gradient_accumulation_steps"
            )
        shape = ops.shape(leaf)
        folded = ops.reshape(leaf, (-1, count, *shape[1:]))
        return ops.take(folded, index, axis=1)

    return keras.tree.map_structure(take, batch)
