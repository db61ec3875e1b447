import keras
import numpy as np
import pytest
from keras import ops

from hortus.engine import kernels
from hortus.vision.modeling.layers.conv2d import Conv2D

WIDE = (2, 16, 16, 192)
"""Inputs large enough for the fast way."""


@pytest.fixture
def chosen(monkeypatch):
    """Whether each call of the kernel took the fast way."""
    choices = []
    original = kernels.convolution_3x3

    def spy(inputs, kernel):
        outputs = original(inputs, kernel)
        choices.append(outputs is not None)
        return outputs

    monkeypatch.setattr(kernels, "convolution_3x3", spy)
    return choices


def test_equals_the_layer_of_keras_in_training_too(chosen):
    layer = Conv2D(192, 3, padding="same", activation="relu", bias_initializer="normal")
    plain = keras.layers.Conv2D(192, 3, padding="same", activation="relu")
    inputs = np.random.RandomState(0).normal(size=WIDE).astype("float32")
    layer.build(WIDE)
    plain.build(WIDE)
    plain.set_weights(layer.get_weights())
    expected = ops.convert_to_numpy(plain(inputs))
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(inputs)), expected)
    assert not chosen
    # The fast way rounds to about 1e-5 of the largest.
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer(inputs, training=True)), expected, atol=5e-5 * expected.max()
    )
    assert chosen == [keras.backend.backend() == "tensorflow"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"strides": 2},
        {"dilation_rate": 2},
        {"padding": "valid"},
        {"groups": 2},
        {"kernel_size": 1, "use_bias": True},
        {"dtype": "mixed_bfloat16"},
    ],
)
def test_others_stay_as_they_are(arguments, chosen):
    settings = {"filters": 192, "kernel_size": 3, "padding": "same", **arguments}
    layer, plain = Conv2D(**settings), keras.layers.Conv2D(**settings)
    layer.build(WIDE)
    plain.build(WIDE)
    plain.set_weights(layer.get_weights())
    inputs = np.random.RandomState(0).normal(size=WIDE).astype("float32")
    np.testing.assert_array_equal(
        ops.convert_to_numpy(ops.cast(layer(inputs, training=True), "float32")),
        ops.convert_to_numpy(ops.cast(plain(inputs), "float32")),
    )
    assert not any(chosen)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="by TensorFlow's tape")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("strides", [1, 2, (3, 1)])
@pytest.mark.parametrize("padding", ["same", "valid"])
def test_1x1_equals_the_layer_of_keras(strides, padding, compiled):
    import tensorflow as tf

    settings = {"strides": strides, "padding": padding, "use_bias": False}
    layer, plain = Conv2D(6, 1, **settings), keras.layers.Conv2D(6, 1, **settings)
    random = np.random.RandomState(0)
    inputs = tf.constant(random.normal(size=(2, 7, 4, 5)), tf.float32)
    layer.build(inputs.shape)
    plain.build(inputs.shape)
    plain.set_weights(layer.get_weights())

    def run(conv):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = conv(inputs, **({"training": True} if conv is layer else {}))
            loss = tf.reduce_sum(outputs**2)
        return outputs, *tape.gradient(loss, [inputs, conv.kernel.value])

    for a, b in zip((tf.function(run) if compiled else run)(layer), run(plain), strict=True):
        # Sums of up to 56 numbers in another order.
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_run_can_do_without(chosen):
    layer = Conv2D(192, 3, padding="same")
    try:
        kernels.allow_fast_kernels(False)
        layer(np.zeros(WIDE, "float32"), training=True)
    finally:
        kernels.allow_fast_kernels(True)
    assert chosen == [False]


def test_config_round_trip():
    layer = Conv2D(4, 3, strides=2, padding="same", use_bias=False, name="some")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is Conv2D
    assert again.get_config() == layer.get_config()
