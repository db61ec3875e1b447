"""Outside of replicas; `replicas_test.py` has two."""

from keras import ops

from hortus.engine import collectives


def test_outside_of_a_strategy_there_is_one_replica():
    assert collectives.separate_replicas() == 1
    assert ops.convert_to_numpy(collectives.sum_over_replicas(ops.ones(()))) == 1.0
