import keras
import numpy as np
import pytest
from keras import ops

from hortus.engine import collectives
from hortus.testing import run_under_engine


def test_outside_of_a_strategy_there_is_one_replica():
    assert collectives.separate_replicas() == 1
    assert ops.convert_to_numpy(collectives.sum_over_replicas(ops.ones(()))) == 1.0


TWO_REPLICAS = """
from hortus.engine import collectives
from hortus.engine.tensorflow import devices
import tensorflow as tf

devices.split_cpu(2)
strategy = tf.distribute.MirroredStrategy(devices.local_devices(0))

def replica(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = collectives.sum_over_replicas(x * x)
    return tf.constant(collectives.separate_replicas()), total, tape.gradient(total, x)

@tf.function
def run():
    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(3.0 + context.replica_id_in_sync_group))
    return strategy.run(replica, args=(values,))

print([[float(x) for x in strategy.experimental_local_results(each)] for each in run()])
"""


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow has replicas")
def test_replicas_add_up_their_values_and_their_gradients():
    printed = run_under_engine("tensorflow", TWO_REPLICAS).strip().splitlines()[-1]
    replicas, totals, gradients = np.array(eval(printed))
    np.testing.assert_array_equal(replicas, [2, 2])
    np.testing.assert_array_equal(totals, [25.0, 25.0])
    # Both totals depend on each value, by 2 x.
    np.testing.assert_array_equal(gradients, [12.0, 16.0])
