import keras
import numpy as np
import pytest
from keras import ops

from hortus.engine import kernels
from hortus.testing import run_under_engine
from hortus.vision.modeling.layers.convolution.conv2d import Conv2D
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


class TestAfterAConvolution:
    """`after` is `norm(conv(x))`, whichever way it takes."""

    WIDE = (4, 32, 32, 16)
    """Inputs large enough for the fast way."""

    def layers(self, conv=None, **settings):
        pair = Conv2D(**{"filters": 96, "kernel_size": 1, "use_bias": False, **(conv or {})})
        norm = BatchNormalization(
            momentum=0.9, gamma_initializer="random_uniform", beta_initializer="normal", **settings
        )
        norm.build(pair.compute_output_shape(self.WIDE))
        pair.build(self.WIDE)
        return pair, norm

    def compare(self, conv, norm, training, is_fast, monkeypatch):
        choices = []
        original = kernels.normalized_convolution_1x1

        def spy(*args, **kwargs):
            choices.append(original(*args, **kwargs))
            return choices[-1]

        monkeypatch.setattr(kernels, "normalized_convolution_1x1", spy)
        x, before = images(*self.WIDE), norm.get_weights()
        expected = norm(conv(x), training=training)
        statistics = norm.get_weights()
        norm.set_weights(before)
        outputs = norm.after(conv, x, training=training)
        # Rounding of float32 sums over some thousand numbers, several times.
        np.testing.assert_allclose(outputs, expected, atol=1e-5)
        for actual, like in zip(norm.get_weights(), statistics, strict=True):
            np.testing.assert_allclose(actual, like, rtol=1e-5, atol=1e-6)
        is_tensorflow = keras.backend.backend() == "tensorflow"
        assert any(y is not None for y in choices) == (is_fast and is_tensorflow)

    @pytest.mark.parametrize("settings", [{}, {"scale": False}, {"center": False}])
    def test_in_one(self, settings, monkeypatch):
        self.compare(*self.layers(**settings), True, is_fast=True, monkeypatch=monkeypatch)

    @pytest.mark.parametrize(
        "conv",
        [
            {"use_bias": True},
            {"activation": "relu"},
            {"kernel_size": 3},
            {"groups": 2},
            {"filters": 4},
        ],
    )
    def test_one_after_the_other(self, conv, monkeypatch):
        self.compare(*self.layers(conv), True, is_fast=False, monkeypatch=monkeypatch)

    def test_not_in_evaluation_and_not_frozen(self, monkeypatch):
        conv, norm = self.layers()
        self.compare(conv, norm, False, is_fast=False, monkeypatch=monkeypatch)
        norm.trainable = False
        self.compare(conv, norm, True, is_fast=False, monkeypatch=monkeypatch)

    def test_not_in_half_precision(self):
        conv, norm = self.layers({"dtype": "mixed_bfloat16"}, dtype="mixed_bfloat16")
        x = images(*self.WIDE)
        expected = ops.cast(norm(conv(x), training=True), "float32")
        outputs = ops.cast(norm.after(conv, x, training=True), "float32")
        np.testing.assert_array_equal(outputs, expected)


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
