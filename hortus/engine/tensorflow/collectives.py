"""Collectives by the strategy of TensorFlow that is open."""

from typing import Any

import tensorflow as tf

from hortus.engine import collectives


@collectives.separate_replicas.on("tensorflow")
def separate_replicas() -> int:
    """As many as the strategy has."""
    context = tf.distribute.get_replica_context()
    return context.num_replicas_in_sync if context is not None else 1


@collectives.sum_over_replicas.on("tensorflow")
def sum_over_replicas(value: Any) -> Any:
    """By the all-reduce of the strategy."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return value
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value)
