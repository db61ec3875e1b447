"""What both engines have in common, tested on each."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from hortus import engine as engines
from hortus.engine import EngineError, value_and_grad


@pytest.fixture
def engine():
    return engines.for_strategy(engines.current_strategy())


@pytest.fixture
def total():
    return keras.Variable(0.0, trainable=False, name="total")


def numbers(count, batch=2, repeat=False):
    dataset = tf.data.Dataset.range(count).map(lambda x: tf.cast(x, tf.float32))
    return (dataset.repeat() if repeat else dataset).batch(batch)


def test_the_name_is_that_of_keras():
    assert engines.name() == keras.backend.backend()


def test_gradients_are_those_of_the_loss():
    variable = keras.Variable([1.0, 2.0])
    (loss, extra), (grad,) = value_and_grad(
        lambda: (ops.sum(variable.value**2), {"kept": 1}), [variable]
    )
    assert (float(loss), extra) == (5.0, {"kept": 1})
    np.testing.assert_array_equal(ops.convert_to_numpy(grad), [2.0, 4.0])


def test_a_loss_can_come_alone_and_a_variable_be_out_of_it():
    used, unused = keras.Variable(3.0), keras.Variable(1.0)
    loss, grads = value_and_grad(lambda: used.value * 2.0, [used, unused])
    assert float(loss) == 6.0 and float(grads[0]) == 2.0
    # TensorFlow has no gradient here, JAX one of zero; optimizers treat both alike.
    assert grads[1] is None or float(grads[1]) == 0.0


def test_a_loop_takes_as_many_batches_as_steps(engine, total):
    def step(iterator):
        total.assign_add(ops.sum(next(iterator)))

    loop = engine.train_loop(step, [total])
    feed = engine.feed(numbers(6, repeat=True), is_training=True)
    loop(feed, 2)
    assert float(total.value) == 0 + 1 + 2 + 3
    loop(feed, 2)
    assert float(total.value) == 15 + 0 + 1
    assert feed.taken == 4
    assert engine.timing.steps == 4 and engine.timing.seconds > 0
    assert 0 <= engine.timing.data_wait_seconds <= engine.timing.seconds


def test_training_data_that_ends_is_an_error_and_keeps_what_was_done(engine, total):
    def step(iterator):
        total.assign_add(ops.sum(next(iterator)))

    feed = engine.feed(numbers(4), is_training=True)
    with pytest.raises(EngineError, match="the training data came to its end"):
        engine.train_loop(step, [total])(feed, 3)
    assert float(total.value) == 6.0


def test_an_evaluation_returns_arrays_of_all_examples_until_the_end(engine, total):
    def step(iterator):
        batch = next(iterator)
        total.assign_add(ops.sum(batch))
        return {"batch": batch, "sum": ops.sum(batch)}

    compiled = engine.eval_step(step, [total])
    feed = engine.feed(numbers(5), is_training=False)
    seen = []
    for _ in range(3):
        logs = compiled(feed)
        assert isinstance(logs["batch"], np.ndarray)
        assert float(logs["sum"]) == logs["batch"].sum()
        seen += logs["batch"].tolist()
    with pytest.raises(StopIteration):
        compiled(feed)
    assert seen == [0, 1, 2, 3, 4]
    assert float(total.value) == 10.0


def test_a_single_step_runs_on_the_batch_at_hand(engine, total):
    def step(iterator):
        batch = next(iterator)
        total.assign_add(ops.sum(batch["x"]))
        return {"twice": batch["x"] * 2}

    logs = engine.single_step(step, [total])({"x": np.array([1.0, 2.0], "float32")})
    np.testing.assert_array_equal(logs["twice"], [2.0, 4.0])
    assert float(total.value) == 3.0


def test_uncompiled_steps_see_values(total):
    engine = engines.for_strategy(engines.current_strategy(), eagerly=True)
    seen = []

    def step(iterator):
        batch = next(iterator)
        seen.append(float(ops.sum(batch)))
        total.assign_add(ops.sum(batch))

    engine.train_loop(step, [total])(engine.feed(numbers(4), is_training=True), 2)
    assert seen == [1.0, 5.0] and float(total.value) == 6.0


def test_accumulation_applies_the_mean_of_the_parts(engine):
    variable = keras.Variable([1.0])
    optimizer = keras.optimizers.SGD(0.1)
    engine.prepare_optimizer(optimizer, [variable])
    applied = []
    apply = optimizer.apply

    def counting(grads, trainable_variables=None):
        applied.append(len(grads))
        apply(grads, trainable_variables)

    optimizer.apply = counting

    def step(iterator):
        def run(part, optimizer):
            loss, grads = value_and_grad(lambda: ops.mean(variable.value * part), [variable])
            optimizer.apply_gradients(list(zip(grads, [variable], strict=True)))
            return {"loss": loss, "count": ops.shape(part)[0]}

        return engine.accumulate(run, next(iterator), optimizer, 2)

    state = [variable, *optimizer.variables]
    logs = engine.single_step(step, state)(np.array([1.0, 2.0, 3.0, 6.0], "float32"))
    assert float(logs["loss"]) == 3.0
    # 1 - 0.1 * mean(1.5, 4.5); float32 rounding.
    np.testing.assert_allclose(ops.convert_to_numpy(variable), [0.7], rtol=1e-6)
    assert len(applied) == 1, "traced once"


def test_one_device_is_the_chief_of_one_host(engine):
    assert (engine.num_replicas, engine.num_hosts, engine.host_index) == (1, 1, 0)
    assert engine.is_chief
    assert engine.any_host(True) and not engine.any_host(False)
    engine.barrier("test")
    context = engine.input_context(is_training=True)
    assert context.get_per_replica_batch_size(8) == 8


def exhausted(message):
    """What an engine raises when memory ends, and TensorFlow when a disk does."""
    if keras.backend.backend() == "jax":
        return RuntimeError(f"RESOURCE_EXHAUSTED: {message}")
    return tf.errors.ResourceExhaustedError(None, None, message)


def test_running_out_of_memory_is_told_from_other_errors(engine):
    assert engine.is_out_of_memory(MemoryError())
    assert not engine.is_out_of_memory(ValueError("no"))
    assert not engine.is_out_of_memory(exhausted("a/events: No space left on device"))
    assert engine.is_out_of_memory(exhausted("OOM when allocating tensor with shape[9]"))


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="what JAX alone cannot do")
def test_jax_says_what_it_cannot_hold(engine, total):
    class Metric:
        name = "mine"

        def __init__(self):
            self.count = tf.Variable(0.0)

    with pytest.raises(EngineError, match=r"the metric mine keeps a .*Variable.* in count"):
        engine.check_metric(Metric())
    texts = tf.data.Dataset.from_tensor_slices(["a", "b"]).batch(1)
    with pytest.raises(EngineError, match="a batch holds text"):
        engine.eval_step(lambda iterator: next(iterator), [])(engine.feed(texts, False))
    other = keras.Variable(1.0)

    def step(iterator):
        next(iterator)
        other.assign_add(1.0)

    with pytest.raises(EngineError, match="updated a variable that is none of"):
        engine.train_loop(step, [total])(engine.feed(numbers(4), True), 1)
