import json

import keras
import numpy as np
import pytest

from hortus import testing
from hortus.core.checkpoints import errors, values
from hortus.core.checkpoints.checkpoint import Checkpoint


def test_on_jax():
    # Replicas on JAX are not several copies of a variable: there is nothing to restore apart.
    testing.run_under_engine("jax", __file__, select="not replicas")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32", "bool", "uint8"])
def test_reading_gives_the_value_in_its_dtype(dtype):
    given = np.array([[0, 1], [1, 0]]).astype(dtype)
    value = values.read(keras.Variable(given, dtype=dtype, trainable=False))
    assert value.dtype.name == dtype
    assert value.tobytes() == given.tobytes()


def test_reading_gives_a_copy():
    variable = keras.Variable(np.ones(1000, "float32"))
    value = values.read(variable)
    variable.assign(np.zeros(1000, "float32"))
    assert value.tolist() == [1.0] * 1000
    value[:] = 5
    assert values.read(variable).tolist() == [0.0] * 1000


def test_assigning_a_plain_variable():
    variable = keras.Variable(np.ones(3, "float32"))
    # A host that takes no share of sums still takes weights.
    values.assign(variable, np.array([1.5, 2, 3], "float32"), holds_sums=False)
    assert values.read(variable).tolist() == [1.5, 2, 3]
    assert not values.is_summed_over_hosts(variable)


@pytest.mark.parametrize(
    ("old", "new"),
    [("int64", "int32"), ("int64", "uint32"), ("uint32", "int64"), ("float32", "bfloat16")],
)
def test_values_move_between_dtypes(old, new):
    value = values.fit_dtype(np.array([1, 5], old), new, "x")
    assert value.dtype.name == new
    assert value.astype("float32").tolist() == [1, 5]


def test_the_same_dtype_is_not_copied():
    value = np.ones(3)
    assert values.fit_dtype(value, "float64", "x") is value


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.array([2**40]), "int32"),
        (np.array([-1]), "uint32"),
        (np.array([2**63], "uint64"), "int64"),
        (np.array([1.0]), "int32"),
        (np.array([1]), "float32"),
        (np.array([True]), "float32"),
    ],
)
def test_what_does_not_fit_is_an_error(value, dtype):
    with pytest.raises(errors.CheckpointError, match="the step"):
        values.fit_dtype(value, dtype, "the step")


@pytest.mark.parametrize(
    ("old", "new", "is_lossy"),
    [
        ("float32", "float32", False),
        ("float32", "float64", False),
        ("bfloat16", "float32", False),
        ("float16", "float32", False),
        ("float32", "bfloat16", True),
        ("bfloat16", "float16", True),
        ("float16", "bfloat16", True),
        ("int64", "int32", False),
    ],
)
def test_lossy_moves_are_known(old, new, is_lossy):
    assert values.loses_precision(old, new) == is_lossy


def make_checkpoint():
    """A small run, and what is in it by name."""
    mean, count = keras.metrics.Mean("loss"), keras.metrics.Metric(name="examples")
    count.n = count.add_variable((), "zeros", dtype="int32", name="n")
    model = keras.Sequential([keras.layers.Dense(3)])
    model.build((None, 2))
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    checkpoint = Checkpoint(model=model, optimizer=optimizer, metrics=[mean, count])
    return checkpoint, model, mean, count


def content(checkpoint):
    variables = checkpoint.layout().variables
    return {name: values.read(named.variable).tolist() for name, named in variables.items()}


_TWO_REPLICAS = """
import json
import numpy as np
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
from hortus.core.checkpoints import keras_private, values_test
with strategy.scope():
    checkpoint, model, mean, count = values_test.make_checkpoint()
told = {
    "copies of a metric": len(keras_private.replica_copies(mean.total) or ()),
    "weights have copies": keras_private.replica_copies(model.weights[0]) is not None,
    "step": checkpoint.restore(OLD),
    "restored": values_test.content(checkpoint),
    "result": float(mean.result()),
    "kernels": [v.numpy().tolist()
                for v in strategy.experimental_local_results(model.weights[0].value)],
}

@tf.function
def step():
    def replica():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        mean.update_state(tf.cast(number, tf.float32) + 0.3)
        count.n.assign_add(1 + number)
    strategy.run(replica)

step()
told["saved"] = values_test.content(checkpoint)
checkpoint.save(NEW, step=8)
print("TOLD", json.dumps(told))
"""


def test_replicas_restore_the_checkpoints_of_one_device_and_the_reverse(tmp_path):
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    checkpoint, model, mean, count = make_checkpoint()
    for value in (0.1, 0.2, 0.4):
        mean.update_state(value)
    count.n.assign(7)  # odd: it cannot be shared equally
    checkpoint.save(old, step=4)
    code = f"OLD, NEW = {old!r}, {new!r}\n{_TWO_REPLICAS}"
    told = json.loads(testing.run_under_engine("tensorflow", code).rpartition("TOLD")[2])
    assert told["copies of a metric"] == 2
    assert not told["weights have copies"]
    assert told["step"] == 4
    assert told["restored"] == content(checkpoint)  # to the bit
    assert told["result"] == float(mean.result())
    assert told["kernels"] == [values.read(model.weights[0]).tolist()] * 2

    assert told["saved"]["metrics/examples/n"] == 10
    assert told["saved"]["metrics/loss/count"] == 5
    # float32 sums
    assert told["saved"]["metrics/loss/total"] == pytest.approx(0.7 + 0.3 + 1.3, rel=1e-6)
    fresh, *_ = make_checkpoint()
    assert fresh.restore(new) == 8
    assert content(fresh) == told["saved"]
