import keras
import numpy as np
import pytest
import tensorflow as tf

from hortus.engine.tensorflow import winograd

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of the TensorFlow engine"
)


def fast(inputs, kernel):
    return winograd.convolution([inputs], kernel)[0]


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
    for a, b in zip(run(fast, inputs, kernel, upstream), expected, strict=True):
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
    np.testing.assert_allclose(second(fast), expected, atol=1e-4 * np.abs(expected).max())


def test_several_inputs_share_a_kernel():
    random = np.random.RandomState(0)
    inputs = [
        tf.constant(random.normal(size=(2, *size, 8)), tf.float32)
        for size in [(8, 8), (5, 3), (1, 1)]
    ]
    kernel = tf.constant(random.normal(size=(3, 3, 8, 4)), tf.float32)

    def with_gradients(convolution):
        with tf.GradientTape() as tape:
            tape.watch([*inputs, kernel])
            outputs = convolution()
            loss = tf.add_n([tf.reduce_sum(y**2) for y in outputs])
        return *outputs, *tape.gradient(loss, [*inputs, kernel])

    expected = with_gradients(lambda: [direct(x, kernel) for x in inputs])
    actual = with_gradients(lambda: winograd.convolution(inputs, kernel))
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=5e-5 * np.abs(b).max())


def test_many_channels_are_worth_it_and_few_are_not():
    def is_faster(batch, side, channels, filters):
        inputs = tf.zeros([batch, side, side, channels])
        return winograd.is_faster([inputs], tf.zeros([3, 3, channels, filters]))

    assert is_faster(4, 32, 256, 256)
    assert not is_faster(4, 32, 32, 32)
    # All the work would be that of mapping the kernel.
    assert not is_faster(1, 4, 256, 256)


def test_unknown_sizes_and_very_many_tiles_are_left_alone():
    def is_faster(*shape):
        found = []
        function = tf.function(
            lambda x: found.append(winograd.is_faster([x], tf.zeros([3, 3, 256, 256])))
        )
        function.get_concrete_function(tf.TensorSpec(shape, tf.float32))
        return found[0]

    assert is_faster(1, 32, 32, 256)
    assert not is_faster(None, 32, 32, 256)
    assert not is_faster(64, 512, 512, 256)


@pytest.mark.parametrize("shapes", [[(3, 7, 5)], [(2, 8, 8), (1, 1, 1), (4, 9, 16)]])
def test_tiles_are_counted_without_making_them(shapes):
    assert winograd.count_tiles(shapes) == winograd._tiles(tuple(shapes)).count
