import keras
import numpy as np
import pytest
import tensorflow as tf

from hortus.engine.tensorflow import winograd

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of the TensorFlow engine"
)


def direct(inputs, kernel):
    return tf.nn.conv2d(inputs, kernel, strides=1, padding="SAME")


def with_gradients(convolution, inputs, kernel, upstream):
    with tf.GradientTape() as tape:
        tape.watch([inputs, kernel])
        outputs = convolution(inputs, kernel)
    return outputs, *tape.gradient(outputs, [inputs, kernel], upstream)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("size", [(4, 4), (8, 12), (7, 5), (1, 2), (9, 16)])
def test_outputs_and_gradients_are_those_of_the_direct_way(size, compiled):
    random = np.random.RandomState(0)
    inputs = tf.constant(random.normal(size=(3, *size, 16)), tf.float32)
    kernel = tf.constant(random.normal(size=(3, 3, 16, 8)), tf.float32)
    upstream = tf.constant(random.normal(size=(3, *size, 8)), tf.float32)
    run = tf.function(with_gradients) if compiled else with_gradients
    expected = with_gradients(direct, inputs, kernel, upstream)
    for a, b in zip(run(winograd.convolution, inputs, kernel, upstream), expected, strict=True):
        assert a.shape == b.shape
        # About ten times the rounding of the direct way; a wrong entry of a map is off by 0.1.
        np.testing.assert_allclose(a, b, atol=5e-5 * np.abs(b).max())


def test_gradients_can_be_differentiated():
    random = np.random.RandomState(0)
    inputs = tf.constant(random.normal(size=(1, 4, 4, 2)), tf.float32)
    kernel = tf.constant(random.normal(size=(3, 3, 2, 2)), tf.float32)

    def second(convolution):
        with tf.GradientTape() as outer:
            outer.watch(kernel)
            with tf.GradientTape() as inner:
                inner.watch(inputs)
                loss = tf.reduce_sum(tf.square(convolution(inputs, kernel)))
            slope = tf.reduce_sum(tf.square(inner.gradient(loss, inputs)))
        return outer.gradient(slope, kernel)

    expected = second(direct)
    np.testing.assert_allclose(
        second(winograd.convolution), expected, atol=1e-4 * np.abs(expected).max()
    )


def test_many_channels_are_worth_it_and_few_are_not():
    def expected(batch, side, channels, filters):
        return winograd.speed_up(tf.zeros([batch, side, side, channels]), filters)

    assert expected(4, 32, 256, 256) > 1.5
    assert expected(4, 32, 64, 64) < 1.0
    # All the work would be that of mapping the kernel.
    assert expected(1, 4, 256, 256) < 1.0
    function = tf.function(lambda x: tf.constant(winograd.speed_up(x, 256)))
    unknown = function.get_concrete_function(tf.TensorSpec([None, 32, 32, 256], tf.float32))
    assert float(unknown(tf.zeros([1, 32, 32, 256]))) == 0.0
