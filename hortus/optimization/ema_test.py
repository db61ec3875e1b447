import json

import keras
import numpy as np
import pytest
from keras import ops

from hortus.optimization.ema import ExponentialMovingAverage
from hortus.testing import reference_dir, run_under_engine

# Eight float32 updates.
RTOL, ATOL = 1e-6, 2e-7

CASES = {
    "decay0.99_dynamic": {"average_decay": 0.99},
    "decay0.9_static": {"average_decay": 0.9, "dynamic_decay": False},
    "decay0.9_dynamic_start3": {"average_decay": 0.9, "start_step": 3},
    "decay0.9_static_start3": {"average_decay": 0.9, "dynamic_decay": False, "start_step": 3},
    "decay0.9_all_weights": {"average_decay": 0.9, "dynamic_decay": False},
}
"""Settings of the stored runs; each of them averages the variables that it stores."""


def stored_run(name):
    """Weights and averages of a stored run: two lists with one array [8, ...] per variable."""
    stored = np.load(reference_dir() / "golden" / "ema.npz")
    count = len(stored[f"{name}/var_names"])
    weights = [stored[f"{name}/model_w{i}"] for i in range(count)]
    return weights, [stored[f"{name}/average_w{i}"] for i in range(count)], stored


def built(variables, inner=None, **settings):
    optimizer = ExponentialMovingAverage(inner or keras.optimizers.SGD(0.1), **settings)
    optimizer.build(variables)
    return optimizer


def small_model():
    layers = [keras.layers.Dense(3, name="dense"), keras.layers.BatchNormalization()]
    model = keras.Sequential([keras.Input((4,)), *layers], name="small")
    generator = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(generator.uniform(0.1, 1.0, weight.shape))
    return model


def values(variables):
    return [np.array(ops.convert_to_numpy(v)) for v in variables]


def train_step(optimizer, variables, moved=()):
    """One step with made-up gradients; `moved` are variables that a layer would have changed."""
    for variable in moved:
        variable.assign(variable * 0.9 + 0.05)
    gradients = [0.1 * ops.cos(ops.convert_to_tensor(v)) for v in variables]
    optimizer.apply_gradients(zip(gradients, variables, strict=True))


@pytest.mark.parametrize("name", list(CASES))
def test_averages_equal_the_golden_ones(name):
    """With a start step exactly; without, by what the zeros of the first average took away."""
    weights, averages, stored = stored_run(name)
    variables = [keras.Variable(w[0], name=f"w{i}") for i, w in enumerate(weights)]
    settings = CASES[name]
    optimizer = built(variables, **settings)
    share_of_zeros = 1.0
    for t in range(1, 9):
        for variable, weight in zip(variables, weights, strict=True):
            variable.assign(weight[t - 1])
        optimizer.update_average(t)
        decay = settings["average_decay"]
        if settings.get("dynamic_decay", True):
            decay = min(decay, (1 + t) / (10 + t))
        share_of_zeros *= 0.0 if settings.get("start_step") else decay
        for average, weight, expected in zip(optimizer.averages, weights, averages, strict=True):
            expected = expected[t - 1] + share_of_zeros * weight[0]
            np.testing.assert_allclose(average.numpy(), expected, RTOL, ATOL, err_msg=f"{name} {t}")
    optimizer.swap_weights()
    if settings.get("start_step"):
        expected = stored[f"{name}/kernel_after_swap"]
        np.testing.assert_allclose(variables[0].numpy(), expected, RTOL, ATOL)


def test_training_equals_the_golden_run():
    weights, averages, stored = stored_run("decay0.9_dynamic_start3")
    kernel, bias = keras.Variable(stored["kernel0"]), keras.Variable(stored["bias0"])
    inner = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer = built([kernel, bias], inner, average_decay=0.9, start_step=3)
    inputs, targets = stored["X"], stored["Y"]
    for t in range(8):
        error = (ops.matmul(inputs, kernel) + bias - targets) * (2.0 / targets.size)
        gradients = [ops.matmul(ops.transpose(inputs), error), ops.sum(error, axis=0)]
        optimizer.apply_gradients(zip(gradients, [kernel, bias], strict=True))
        np.testing.assert_allclose(kernel.numpy(), weights[0][t], 1e-5, 1e-6)
        np.testing.assert_allclose(optimizer.averages[0].numpy(), averages[0][t], 1e-5, 1e-6)
    assert int(optimizer.iterations.numpy()) == 8


def test_swapping_twice_leaves_every_bit():
    model = small_model()
    optimizer = ExponentialMovingAverage(keras.optimizers.Adam(0.1), trainable_weights_only=False)
    optimizer.shadow_copy(model)
    for _ in range(3):
        train_step(optimizer, model.trainable_variables, model.non_trainable_variables)
    weights, averages = values(model.weights), values(optimizer.averages)
    assert any((w != a).any() for w, a in zip(weights, averages, strict=True))

    optimizer.swap_weights()
    for value, expected in zip(values(model.weights), averages, strict=True):
        np.testing.assert_array_equal(value, expected)
    optimizer.swap_weights()
    for value, expected in zip(values(model.weights), weights, strict=True):
        np.testing.assert_array_equal(value, expected)
    for value, expected in zip(values(optimizer.averages), averages, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_swapping_low_precision_weights_loses_nothing():
    variable = keras.Variable([1.0, 0.3], dtype="bfloat16")
    optimizer = built([variable], average_decay=0.999, dynamic_decay=False)
    optimizer.update_average(1)
    variable.assign([2.0, 0.7])
    optimizer.update_average(2)
    average = optimizer.averages[0].numpy()
    assert average.dtype == np.float32
    # bfloat16 has no number between 1 and 1.0078: the average must not be rounded to it.
    assert average[0] == pytest.approx(1.001, abs=1e-5)
    weights = variable.numpy()
    optimizer.swap_weights()
    assert float(variable.numpy()[0]) == 1.0
    optimizer.swap_weights()
    np.testing.assert_array_equal(variable.numpy(), weights)
    np.testing.assert_array_equal(optimizer.averages[0].numpy(), average)


def test_the_context_swaps_back_after_an_error():
    variable = keras.Variable([1.0])
    optimizer = built([variable])
    train_step(optimizer, [variable])
    train_step(optimizer, [variable])
    weights, average = variable.numpy(), optimizer.averages[0].numpy()
    seen = []

    def evaluate():
        with optimizer.averaged_weights():
            seen.append(variable.numpy())
            raise KeyError

    with pytest.raises(KeyError):
        evaluate()
    np.testing.assert_array_equal(seen[0], average)
    np.testing.assert_array_equal(variable.numpy(), weights)
    assert not optimizer.is_swapped


def test_training_on_swapped_weights_raises():
    variable = keras.Variable([1.0])
    optimizer = built([variable])
    train_step(optimizer, [variable])
    with optimizer.averaged_weights(), pytest.raises(RuntimeError, match="swap back"):
        train_step(optimizer, [variable])


def test_before_the_first_update_the_average_is_the_weights():
    variable = keras.Variable([1.0])
    optimizer = built([variable])
    variable.assign([5.0])  # as restoring a checkpoint of the model would
    with optimizer.averaged_weights():
        assert variable.numpy() == [5.0]
    train_step(optimizer, [variable])
    np.testing.assert_array_equal(optimizer.averages[0].numpy(), variable.numpy())


def test_a_run_continues_from_its_variables():
    first, second = keras.Variable([1.0, 2.0]), keras.Variable([0.0, 0.0])
    one, other = built([first]), built([second])
    for _ in range(3):
        train_step(one, [first])
    second.assign(first)
    assert any(average is variable for variable in one.variables for average in one.averages)
    other.set_weights(values(one.variables))
    for _ in range(2):
        train_step(one, [first])
        train_step(other, [second])
    np.testing.assert_array_equal(values(one.variables)[0], values(other.variables)[0])
    np.testing.assert_array_equal(one.averages[0].numpy(), other.averages[0].numpy())
    assert int(other.iterations.numpy()) == 5


def test_an_average_that_joins_late_begins_with_the_weights():
    variable = keras.Variable([1.0])
    inner = keras.optimizers.SGD(0.1)
    for _ in range(20):
        train_step(inner, [variable])
    optimizer = built([variable], inner, average_decay=0.99, dynamic_decay=False)
    train_step(optimizer, [variable])
    np.testing.assert_array_equal(optimizer.averages[0].numpy(), variable.numpy())


def test_all_weights_need_the_model():
    model = small_model()
    optimizer = built(model.trainable_variables, trainable_weights_only=False)
    with pytest.raises(ValueError, match=r"call shadow_copy\(model\)"):
        train_step(optimizer, model.trainable_variables)
    optimizer.shadow_copy(model)
    train_step(optimizer, model.trainable_variables)
    assert len(optimizer.averages) == len(model.weights) == 6


def test_trainable_weights_are_known_from_the_optimizer_or_the_model():
    model = small_model()
    by_model = ExponentialMovingAverage(keras.optimizers.SGD(0.1))
    by_model.shadow_copy(model)
    by_model.build(model.trainable_variables)
    by_optimizer = built(model.trainable_variables)
    by_optimizer.shadow_copy(model)
    assert len(by_model.averages) == len(by_optimizer.averages) == 4
    with pytest.raises(ValueError, match="already averages 4 other weights"):
        by_model.shadow_copy(small_model())


def test_names_of_averages_tell_whose_they_are():
    model = small_model()
    optimizer = built(model.trainable_variables)
    names = [average.path for average in optimizer.averages]
    assert names[0] == "ExponentialMovingAverage/small_dense_kernel_average"
    assert len(set(names)) == 4


def test_it_survives_serialisation():
    optimizer = ExponentialMovingAverage(
        keras.optimizers.Adam(0.2), 0.9, 5, dynamic_decay=False, trainable_weights_only=False
    )
    data = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
    again = keras.optimizers.deserialize(data)
    assert again.get_config() == optimizer.get_config()
    assert float(again.learning_rate) == pytest.approx(0.2)


def test_the_learning_rate_is_the_inner_one():
    optimizer = built([keras.Variable([1.0])])
    optimizer.learning_rate = 0.5
    assert float(optimizer.inner_optimizer.learning_rate) == 0.5
    assert float(optimizer.learning_rate) == 0.5


def run_five_steps(is_compiled):
    """All weights and averages after five steps."""
    model = small_model()
    inner = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer = ExponentialMovingAverage(inner, 0.9, 2, trainable_weights_only=False)
    optimizer.shadow_copy(model)
    optimizer.build(model.trainable_variables)

    def step():
        train_step(optimizer, model.trainable_variables, model.non_trainable_variables)

    if is_compiled:
        step = compiled(step, [*model.weights, *optimizer.variables])
    for _ in range(5):
        step()
    return values([*model.weights, *optimizer.averages])


def test_a_compiled_step_equals_an_eager_one():
    for eager, fast in zip(run_five_steps(False), run_five_steps(True), strict=True):
        np.testing.assert_allclose(eager, fast, 1e-5, 1e-6)


def compiled(step, variables):
    """The step, compiled as the engine does: on JAX as a pure function of all variables."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.function(step)
    import jax

    @jax.jit
    def pure(state):
        with keras.StatelessScope(list(zip(variables, state, strict=True))) as scope:
            step()
        return [scope.get_current_value(v) for v in variables]

    def run():
        for variable, value in zip(variables, pure([v.value for v in variables]), strict=True):
            variable.assign(value)

    return run


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="Keras skips by tf.cond")
@pytest.mark.parametrize("is_outside", [True, False])
def test_a_step_that_the_loss_scale_skips_is_no_update(is_outside):
    variable = keras.Variable([1.0, 2.0])
    scaled = lambda inner: keras.optimizers.LossScaleOptimizer(inner, initial_scale=1.0)  # noqa: E731
    sgd = keras.optimizers.SGD(0.1)
    if is_outside:
        average = ExponentialMovingAverage(scaled(sgd), 0.9)
        optimizer = average
    else:
        average = ExponentialMovingAverage(sgd, 0.9)
        optimizer = scaled(average)
    optimizer.build([variable])
    for gradient in ([1.0, 1.0], [1.0, 0.5]):
        optimizer.apply([ops.convert_to_tensor(gradient)], [variable])
    before = values([variable, *average.averages, average.variables[0]])
    optimizer.apply([ops.convert_to_tensor([np.inf, 1.0])], [variable])
    after = values([variable, *average.averages, average.variables[0]])
    for x, y in zip(before, after, strict=True):
        # A kept average is computed as weights + 1 * (average - weights): one rounding.
        np.testing.assert_allclose(x, y, 2e-7)
    assert int(before[2]) == int(after[2]) == 2


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="TensorFlow has no stateless_apply")
def test_stateless_apply():
    model = small_model()
    weights = values(model.trainable_variables)
    optimizer = built(model.trainable_variables, average_decay=0.9)
    gradients = [ops.ones(v.shape) for v in model.trainable_variables]
    new_weights, new_state = optimizer.stateless_apply(
        [v.value for v in optimizer.variables], gradients, [ops.array(w) for w in weights]
    )
    np.testing.assert_allclose(new_weights[0], weights[0] - 0.1, 1e-6)
    np.testing.assert_array_equal(new_state[1], new_weights[0])
    np.testing.assert_array_equal(model.trainable_variables[0].numpy(), weights[0])

    everything = ExponentialMovingAverage(keras.optimizers.SGD(0.1), trainable_weights_only=False)
    everything.shadow_copy(model)
    everything.build(model.trainable_variables)
    with pytest.raises(ValueError, match="also averages weights that are not trainable"):
        everything.stateless_apply([], [], [])


TWO_REPLICAS = """
import sys
import numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import keras
from hortus.optimization.ema import ExponentialMovingAverage

def run(strategy, replicas):
    with strategy.scope():
        kernel = keras.Variable(np.linspace(0.1, 1, 6, dtype="f").reshape(2, 3), name="kernel")
        inner = keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer = ExponentialMovingAverage(inner, 0.9, start_step=2)
        optimizer.build([kernel])

    @tf.function
    def step():
        def on_replica():  # whose gradients are summed
            optimizer.apply_gradients([(keras.ops.cos(kernel) / replicas, kernel)])
        strategy.run(on_replica)

    for _ in range(5):
        step()
    average = optimizer.averages[0]
    copies = [c.numpy() for c in strategy.experimental_local_results(average.value)]
    before = kernel.numpy()
    optimizer.swap_weights()
    np.testing.assert_array_equal(kernel.numpy(), copies[0])
    swapped = [c.numpy() for c in strategy.experimental_local_results(kernel.value)]
    np.testing.assert_array_equal(swapped[0], swapped[-1])
    optimizer.swap_weights()
    np.testing.assert_array_equal(kernel.numpy(), before)
    return copies

two = run(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), 2)
assert len(two) == 2
np.testing.assert_array_equal(two[0], two[1])
one = run(tf.distribute.get_strategy(), 1)
np.testing.assert_allclose(two[0], one[0], 1e-6)
print("alike")
"""


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a TensorFlow strategy")
def test_two_replicas_keep_the_average_of_one():
    assert "alike" in run_under_engine("tensorflow", TWO_REPLICAS)
