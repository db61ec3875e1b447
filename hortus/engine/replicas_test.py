"""What both engines do with two replicas; on TensorFlow, its collectives too.

A process can split its CPU only before it uses it, so that the tests run in one of their own.
"""

import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from hortus import engine as engines
from hortus.core import distribute_utils
from hortus.engine import EngineError, collectives, value_and_grad
from hortus.testing import run_under_engine

_HERE = "HORTUS_TEST_REPLICAS"
with_replicas = pytest.mark.skipif(_HERE not in os.environ, reason="in a process of their own")
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="where replicas run code of their own"
)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["tensorflow", "jax"])
def test_with_two_replicas(engine, monkeypatch):
    monkeypatch.setenv(_HERE, "2")
    printed = run_under_engine(engine, __file__, select="not test_with_two_replicas")
    assert " passed" in printed  # and not all left out


@pytest.fixture(scope="module")
def engine():
    engines.select(virtual_cpu_devices=2)
    strategy = distribute_utils.get_distribution_strategy("mirrored", virtual_cpu_devices=2)
    return engines.for_strategy(strategy)


def numbers(*values, batch):
    dataset = tf.data.Dataset.from_tensor_slices(np.array(values, "float32"))
    return dataset.batch(batch)


@with_replicas
def test_there_are_two_on_one_host(engine):
    assert (engine.num_replicas, engine.num_hosts, engine.host_index) == (2, 1, 0)
    assert engine.num_programs == (2 if engine.name == "tensorflow" else 1)
    engine.barrier("test")
    assert engine.any_host(True) and not engine.any_host(False)


@with_replicas
@pytest.mark.parametrize("clipnorm", [None, 0.5])
def test_a_step_is_that_of_the_whole_batch(engine, clipnorm):
    """Gradients are summed first and clipped then: each replica alone would clip its own."""
    with engine.strategy.scope():
        variable = keras.Variable([1.0])
        optimizer = keras.optimizers.SGD(1.0, clipnorm=clipnorm)
    engine.prepare_optimizer(optimizer, [variable])

    def replica(batch):
        loss, grads = value_and_grad(
            lambda: ops.mean(variable.value * batch), [variable], optimizer
        )
        optimizer.apply_gradients(list(zip(grads, [variable], strict=True)))
        return loss

    def step(iterator):
        engine.strategy.run(replica, args=(next(iterator),))

    feed = engine.feed(numbers(1, 2, -3, 4, batch=4).repeat(), is_training=True)
    engine.train_loop(step, [variable, *optimizer.variables])(feed, 1)
    # The mean is 1, of parts with 1.5 and 0.5, which would be clipped to 0.5 both.
    expected = 1.0 - (1.0 if clipnorm is None else clipnorm)
    np.testing.assert_allclose(ops.convert_to_numpy(variable), [expected], rtol=1e-6)


@with_replicas
@pytest.mark.parametrize("count", [4, 3, 1])
def test_an_evaluation_puts_all_examples_together_in_order(engine, count):
    def step(iterator):
        double = engine.skip_empty(lambda batch: {"twice": batch * 2})
        logs = engine.strategy.run(double, args=(next(iterator),))
        return engine.merge_replicas(logs)

    feed = engine.feed(numbers(*range(count), batch=4), is_training=False)
    logs = engine.eval_step(step, [])(feed)
    np.testing.assert_array_equal(logs["twice"], 2.0 * np.arange(count))


@with_replicas
def test_a_training_batch_that_cannot_be_halved_is_refused(engine):
    variable = keras.Variable(0.0, trainable=False)

    def run():
        feed = engine.feed(numbers(1, 2, 3, batch=3).repeat().batch(1).unbatch(), is_training=True)
        engine.train_loop(lambda iterator: next(iterator), [variable])(feed, 1)

    with pytest.raises((EngineError, tf.errors.InvalidArgumentError), match="shared evenly by 2"):
        run()


@with_replicas
def test_accumulated_parts_are_means_over_both(engine):
    with engine.strategy.scope():
        variable = keras.Variable([1.0])
        optimizer = keras.optimizers.SGD(0.1)
    engine.prepare_optimizer(optimizer, [variable])

    def replica(batch):
        def part(part, optimizer):
            loss, grads = value_and_grad(
                lambda: ops.mean(variable.value * part), [variable], optimizer
            )
            optimizer.apply_gradients(list(zip(grads, [variable], strict=True)))
            return {"loss": loss}

        engine.accumulate(part, batch, optimizer, 2)

    def step(iterator):
        engine.strategy.run(replica, args=(next(iterator),))

    feed = engine.feed(numbers(1, 2, 3, 6, batch=4).repeat(), is_training=True)
    engine.train_loop(step, [variable, *optimizer.variables])(feed, 1)
    # 1 - 0.1 * mean; float32 rounding.
    np.testing.assert_allclose(ops.convert_to_numpy(variable), [0.7], rtol=1e-6)


@with_replicas
@on_tensorflow
def test_replicas_draw_numbers_of_their_own(engine):
    with engine.strategy.scope():
        seeds = keras.random.SeedGenerator(3)

    def draw():
        return keras.random.uniform((4,), seed=seeds)

    def drawn():
        values = tf.function(engine.strategy.run)(draw)
        return [np.array(each) for each in engine.strategy.experimental_local_results(values)]

    first, second = drawn()
    np.testing.assert_array_equal(first, second)
    engine.diverge_seeds([seeds.state])
    first, second = drawn()
    assert not np.array_equal(first, second)


@with_replicas
@on_tensorflow
def test_replicas_add_up_their_values_and_their_gradients(engine):
    def replica(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = collectives.sum_over_replicas(x * x)
        return tf.constant(collectives.separate_replicas()), total, tape.gradient(total, x)

    @tf.function
    def run():
        values = engine.strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(3.0 + context.replica_id_in_sync_group)
        )
        return engine.strategy.run(replica, args=(values,))

    found = [[float(x) for x in engine.strategy.experimental_local_results(each)] for each in run()]
    # Both totals, 3^2 + 4^2, depend on each value, by 2 x.
    assert found == [[2.0, 2.0], [25.0, 25.0], [12.0, 16.0]]


@with_replicas
@pytest.mark.skipif(keras.backend.backend() != "jax", reason="where a step is one computation")
def test_no_replica_is_separate_on_jax(engine):
    found = []

    def step(iterator):
        next(iterator)
        found.append(collectives.separate_replicas())

    engine.train_loop(step, [])(engine.feed(numbers(1, 2, batch=2).repeat(), is_training=True), 1)
    assert found == [1]
