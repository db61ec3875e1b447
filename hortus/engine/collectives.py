"""What replicas of a step, each with its own part of the batch, have to tell each other."""

from typing import Any

from hortus.engine.dispatch import dispatched


@dispatched()
def separate_replicas() -> int:
    """Over how many replicas, each seeing its own part of the batch, the caller is being run.

    1 on JAX, where a compiled step sees the whole batch however it is split over devices.
    """
    return 1


@dispatched()
def sum_over_replicas(value: Any) -> Any:
    """Adds up `value` over the replicas of `separate_replicas`; differentiable."""
    return value
