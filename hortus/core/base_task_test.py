import keras
import numpy as np
import pytest
from keras import ops

from hortus import optimization
from hortus.core import base_task
from hortus.core import config_definitions as cfg
from hortus.engine.innermost import innermost
from hortus.testing import tiny_task


@pytest.fixture
def task():
    return tiny_task.TinyTask(tiny_task.TinyTaskConfig())


def batch(count=4):
    images, labels = tiny_task.arrays(count)
    return {"image": images, "index": np.arange(count, dtype="int32")}, labels


def optimizer_config(**optimizer):
    return optimization.OptimizationConfig(
        {
            "optimizer": {"type": "sgd", "sgd": optimizer},
            "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.1}},
        }
    )


def test_a_train_step_lowers_the_loss_and_counts_metrics(task):
    model, metrics = task.build_model(), task.build_metrics()
    optimizer = task.create_optimizer(optimizer_config())
    optimizer.build(model.trainable_variables)
    losses = [
        float(task.train_step(batch(), model, optimizer, metrics)[task.loss]) for _ in range(5)
    ]
    assert losses[-1] < losses[0]
    assert float(metrics[0].count) == 5 * 4


def test_a_validation_step_changes_nothing_but_metrics(task):
    model, metrics = task.build_model(), task.build_metrics(training=False)
    before = [np.array(weight) for weight in model.get_weights()]
    logs = task.validation_step(batch(), model, metrics)
    assert set(logs) == {task.loss, "index"}
    assert float(metrics[0].count) == 4
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_the_base_class_needs_no_loss_and_no_metrics():
    class Least(base_task.Task):
        def build_model(self):
            return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])

        def build_inputs(self, params, input_context=None):
            return None

    task = Least(cfg.TaskConfig(), logging_dir="/logs", name="least")
    assert (task.logging_dir, task.name) == ("/logs", "least")
    assert task.build_metrics() == []
    assert float(task.build_losses(None, None, aux_losses=[ops.ones(())])) == 1.0
    assert task.aggregate_logs("state", {}) == "state"
    assert task.reduce_aggregated_logs(None) == {}


def test_float16_scales_the_loss_and_private_training_clips_and_adds_noise():
    plain = base_task.Task.create_optimizer(optimizer_config(), cfg.RuntimeConfig())
    assert isinstance(plain, keras.optimizers.SGD)
    half = cfg.RuntimeConfig(mixed_precision_dtype="float16", loss_scale="dynamic")
    scaled = base_task.Task.create_optimizer(optimizer_config(), half)
    assert innermost(scaled) is not scaled
    assert float(scaled.scale_loss(ops.ones(()))) > 1.0
    private = cfg.DifferentialPrivacyConfig(clipping_norm=0.5, noise_multiplier=0.0)
    optimizer = base_task.Task.create_optimizer(optimizer_config(), dp_config=private)
    variable = keras.Variable([0.0, 0.0])
    optimizer.build([variable])
    optimizer.apply_gradients([(ops.convert_to_tensor([30.0, 40.0]), variable)])
    # The gradient of norm 50 is cut to 0.5, and 0.1 of it taken off; float32 rounding.
    np.testing.assert_allclose(ops.convert_to_numpy(variable), [-0.03, -0.04], rtol=1e-5)


def test_inputs_are_split_where_there_are_two_parts():
    assert base_task.split_inputs(("x", "y")) == ("x", "y")
    assert base_task.split_inputs({"x": 1}) == ({"x": 1}, None)
    assert base_task.split_inputs(("x", "y", "z")) == (("x", "y", "z"), None)


def test_low_precision_becomes_float32_and_the_rest_stays():
    outputs = {"a": ops.ones([2], "bfloat16"), "b": ops.ones([2], "int32")}
    cast = base_task.ops_in_float32(outputs)
    dtypes = {name: keras.backend.standardize_dtype(cast[name].dtype) for name in cast}
    assert dtypes == {"a": "float32", "b": "int32"}
