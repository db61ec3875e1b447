import keras
import numpy as np
import pytest
from keras import ops

from hortus.engine import kernels
from hortus.vision.modeling.layers.convolution.conv2d import Conv2D

WIDE = (2, 16, 16, 192)
"""Inputs large enough for the fast way."""


@pytest.fixture
def chosen(monkeypatch):
    """Whether each call of the kernel took the fast way."""
    choices = []
    original = kernels.convolution_3x3.fast

    def spy(*args):
        outputs = original(*args)
        choices.append(outputs is not None)
        return outputs

    monkeypatch.setattr(kernels.convolution_3x3, "fast", spy)
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
        {"dilation_rate": 2},
        {"padding": "valid"},
        {"groups": 2},
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


def with_gradients(layer, inputs, training):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(inputs, **({"training": True} if training else {}))
        loss = tf.reduce_sum(outputs**2)
    return outputs, *tape.gradient(loss, [inputs, *(v.value for v in layer.trainable_variables)])


def compare_with_keras(shape, compiled, **settings):
    """Outputs and gradients in training against those of the layer of Keras."""
    import tensorflow as tf

    layer = Conv2D(bias_initializer="normal", **settings)
    plain = keras.layers.Conv2D(**settings)
    inputs = tf.constant(np.random.RandomState(0).normal(size=shape), tf.float32)
    layer.build(shape)
    plain.build(shape)
    plain.set_weights(layer.get_weights())
    run = tf.function(with_gradients) if compiled else with_gradients
    expected = with_gradients(plain, inputs, training=False)
    for a, b in zip(run(layer, inputs, training=True), expected, strict=True):
        # Sums of up to 1,728 numbers in another order.
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * np.abs(b).max())


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="by TensorFlow's tape")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("strides", [1, 2, (3, 1)])
@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("use_bias", [False, True])
def test_1x1_equals_the_layer_of_keras(use_bias, padding, strides, compiled):
    compare_with_keras(
        (2, 7, 4, 5),
        compiled,
        filters=6,
        kernel_size=1,
        strides=strides,
        padding=padding,
        use_bias=use_bias,
    )


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="by TensorFlow's tape")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("size", [(8, 6), (7, 5), (1, 2), (3, 9)])
@pytest.mark.parametrize("strides", [1, 2, (1, 2), (3, 2), 4])
def test_3x3_equals_the_layer_of_keras(strides, size, compiled, chosen):
    settings = {"filters": 20, "kernel_size": 3, "padding": "same", "strides": strides}
    compare_with_keras((2, *size, 16), compiled, **settings)
    assert chosen == [True]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow has the fast way")
def test_few_channels_many_positions_and_unknown_sizes_are_left_alone():
    import tensorflow as tf

    def is_fast(shape, kernel):
        # Nothing is computed: the largest inputs would take long.
        run = tf.function(lambda x: kernels.convolution_3x3.fast([x], tf.zeros(kernel), (2, 2)))
        return run.get_concrete_function(tf.TensorSpec(shape)).structured_outputs is not None

    assert is_fast([1, 8, 8, 16], [3, 3, 16, 16])
    assert not is_fast([1, 8, 8, 3], [3, 3, 3, 32])
    assert not is_fast([16, 512, 512, 16], [3, 3, 16, 16])
    assert not is_fast([None, 8, 8, 16], [3, 3, 16, 16])


def test_a_run_can_do_without(chosen):
    layer = Conv2D(192, 3, padding="same")
    with kernels.FAST_KERNELS.scope(False):
        layer(np.zeros(WIDE, "float32"), training=True)
    assert chosen == [False]


class Doubled(Conv2D):
    def call(self, inputs):
        return 2.0 * super().call(inputs)


@pytest.mark.parametrize(
    ("cls", "settings", "is_fast"),
    [
        (Conv2D, {}, True),
        (Conv2D, {"activity_regularizer": keras.regularizers.L1(1e-3)}, None),
        (Conv2D, {"dtype": "mixed_bfloat16"}, None),
        (Doubled, {}, None),
    ],
    ids=["plain", "activity_regularizer", "half", "subclass"],
)
def test_several_inputs_are_as_one_after_the_other(cls, settings, is_fast, monkeypatch):
    together, original = [], kernels.convolution_3x3.fast

    def spy(inputs, *args):
        outputs = original(inputs, *args)
        if len(inputs) > 1:
            together.append(outputs is not None)
        return outputs

    monkeypatch.setattr(kernels.convolution_3x3, "fast", spy)
    layer = cls(192, 3, padding="same", activation="relu", **settings)
    layer.build(WIDE)
    random = np.random.RandomState(0)
    inputs = [
        ops.convert_to_tensor(random.normal(size=(2, side, side, 192)).astype("float32"))
        for side in (16, 8)
    ]
    expected = [layer(x) for x in inputs]
    losses = [float(loss) for loss in layer.losses]
    outputs = layer.train_together(inputs)
    for a, b in zip(outputs, expected, strict=True):
        assert a.dtype == b.dtype
        a, b = (ops.convert_to_numpy(ops.cast(y, "float32")) for y in (a, b))
        # The fast way rounds to about 1e-5 of the largest.
        np.testing.assert_allclose(a, b, atol=5e-5 * b.max())
    assert bool(losses) == ("activity_regularizer" in settings)
    np.testing.assert_allclose([float(loss) for loss in layer.losses], losses, rtol=1e-4)
    if keras.backend.backend() == "tensorflow":
        assert together == ([] if is_fast is None else [is_fast])


def test_config_round_trip():
    layer = Conv2D(4, 3, strides=2, padding="same", use_bias=False, name="some")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is Conv2D
    assert again.get_config() == layer.get_config()
