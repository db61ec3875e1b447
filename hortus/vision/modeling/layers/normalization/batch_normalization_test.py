import keras
import numpy as np
import pytest
from keras import ops

from hortus.testing import run_under_engine
from hortus.vision.modeling.layers.normalization.batch_normalization import BatchNormalization

# Rounding of float32 sums over some hundred numbers of about 5.
CLOSE = 2e-6


def images(*shape, seed=0):
    return np.random.RandomState(seed).normal(3.0, 2.0, shape).astype("float32")


def numpy_moments(x):
    flat = x.reshape(-1, x.shape[-1]).astype("float64")
    return flat.mean(0), flat.var(0)


@pytest.mark.parametrize("shape", [(4, 5, 6, 7), (30, 7), (4, 30, 7), (2, 3, 4, 5, 7)])
def test_training_normalises_and_follows_the_population_variance(shape):
    layer, x = BatchNormalization(momentum=0.9), images(*shape)
    y = ops.convert_to_numpy(layer(x, training=True))
    mean, variance = numpy_moments(x)
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(variance + 1e-3), atol=CLOSE)
    np.testing.assert_allclose(layer.moving_mean, 0.1 * mean, atol=CLOSE)
    np.testing.assert_allclose(layer.moving_variance, 0.9 + 0.1 * variance, atol=CLOSE)


def test_like_keras_in_training_evaluation_and_frozen():
    ours, theirs = BatchNormalization(), keras.layers.BatchNormalization()
    for step, training in enumerate([True, True, False]):
        x = images(4, 6, 6, 3, seed=step)
        np.testing.assert_allclose(
            ours(x, training=training), theirs(x, training=training), atol=CLOSE
        )
    ours.trainable = theirs.trainable = False
    np.testing.assert_allclose(ours(x, training=True), theirs(x, training=True), atol=CLOSE)
    for own, their in zip(ours.variables, theirs.variables, strict=True):
        assert own.name == their.name
        np.testing.assert_allclose(own, their, atol=CLOSE)


def test_a_small_epsilon_counts():
    # The fused kernel would raise it to 1e-5, so the layer has to go another way.
    x = images(8, 2, 2, 3) * 1e-3
    y = ops.convert_to_numpy(BatchNormalization(epsilon=1e-7)(x, training=True))
    mean, variance = numpy_moments(x)
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(variance + 1e-7), atol=1e-5)


def test_without_scale_and_offset():
    layer, x = BatchNormalization(center=False, scale=False), images(4, 3, 3, 2)
    y = ops.convert_to_numpy(layer(x, training=True))
    np.testing.assert_allclose(y.mean((0, 1, 2)), 0.0, atol=CLOSE)
    assert [w.name for w in layer.weights] == ["moving_mean", "moving_variance"]


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_keeps_float32_statistics(policy):
    layer = BatchNormalization(dtype=policy, momentum=0.0)
    x = ops.cast(images(8, 6, 6, 3), layer.compute_dtype)
    y = layer(x, training=True)
    assert keras.backend.standardize_dtype(y.dtype) == layer.compute_dtype
    assert {keras.backend.standardize_dtype(w.dtype) for w in layer.weights} == {"float32"}
    mean, variance = numpy_moments(ops.convert_to_numpy(ops.cast(x, "float32")))
    np.testing.assert_allclose(layer.moving_mean, mean, rtol=1e-5)
    np.testing.assert_allclose(layer.moving_variance, variance, rtol=1e-5)


def test_paths_of_variables_say_batch_normalization():
    # Configs exclude its variables from weight decay by this text.
    inputs = keras.Input((4, 3))
    x = keras.layers.Dense(3, name="dense")(inputs)
    model = keras.Model(inputs, BatchNormalization(name="stem_norm")(x))
    found = {v.path for v in model.variables if "batch_normalization" in v.path}
    names = ("gamma", "beta", "moving_mean", "moving_variance")
    assert found == {f"stem_norm/batch_normalization/{name}" for name in names}


def test_freezing_before_and_after_it_is_built():
    before, after = BatchNormalization(), BatchNormalization(gamma_regularizer="l2")
    before.trainable = False
    before.build((None, 3)), after.build((None, 3))
    assert len(after.trainable_weights) == 2 and len(after.losses) == 1
    after.trainable = False
    for layer in (before, after):
        assert not layer.trainable_weights and not any(w.trainable for w in layer.weights)
        layer.trainable = True
        assert [w.name for w in layer.weights if w.trainable] == ["gamma", "beta"]


def test_serialises_and_refuses_what_it_cannot():
    layer = BatchNormalization(momentum=0.8, epsilon=1e-4, synchronized=True, name="norm")
    again = BatchNormalization.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    assert again.synchronized and again.momentum == 0.8
    with pytest.raises(ValueError, match="axis=1"):
        BatchNormalization(axis=1)
    with pytest.raises(ValueError, match="renorm"):
        BatchNormalization(renorm=True)


REPLICAS = """
import numpy as np, tensorflow as tf, keras
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from hortus.vision.modeling.layers.normalization.batch_normalization import BatchNormalization
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
x = np.random.RandomState(0).normal(50.0, 2.0, (8, 5, 5, 3)).astype("float32")
w = np.random.RandomState(1).normal(0.0, 1.0, x.shape).astype("float32")

def train(layer, steps=2):
    @tf.function
    def step(x, w):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True) * w)
        gradients = tape.gradient(loss, [v.value for v in layer.trainable_variables])
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
    def part(context, a):
        half = len(a) // context.num_replicas_in_sync
        i = context.replica_id_in_sync_group
        return tf.constant(a[i * half : (i + 1) * half])
    this = tf.distribute.get_strategy()
    pieces = [
        this.experimental_distribute_values_from_function(lambda c, a=a: part(c, a)) for a in (x, w)
    ]
    for _ in range(steps):
        gradients = this.run(step, args=tuple(pieces))
    first = lambda v: np.array(this.experimental_local_results(v)[0])
    return [first(g) for g in gradients] + [np.array(v) for v in layer.variables]

def statistics_agree(layer):
    for v in layer.non_trainable_variables:
        copies = strategy.experimental_local_results(v.value)
        assert len(copies) == 2
        np.testing.assert_array_equal(copies[0], copies[1])

alone = train(BatchNormalization(synchronized=True))
with strategy.scope():
    both, each = BatchNormalization(synchronized=True), BatchNormalization()
    both.build(x.shape), each.build(x.shape)
    together, apart = train(both), train(each)
statistics_agree(both), statistics_agree(each)
# float32 rounding of values around 50, and of gradients that sum 100 terms.
for a, b in zip(alone, together):
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-4)
halves = [h.reshape(-1, 3) for h in np.split(x.astype("float64"), 2)]
variance = np.mean([h.var(0) for h in halves], 0)
np.testing.assert_allclose(each.moving_mean, both.moving_mean, rtol=1e-5)
np.testing.assert_allclose(each.moving_variance, 0.99**2 + (1 - 0.99**2) * variance, rtol=1e-5)
assert not np.allclose(apart[-1], together[-1], rtol=1e-5, atol=0)
"""


def test_two_replicas_synchronise_or_agree_on_the_mean():
    run_under_engine("tensorflow", REPLICAS)
