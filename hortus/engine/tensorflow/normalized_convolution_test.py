import keras
import numpy as np
import pytest
import tensorflow as tf

from hortus.engine.tensorflow import normalized_convolution

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of the TensorFlow engine"
)

EPSILON = 1e-3


def values(shape, filters, mean=0.3, seed=0):
    """Inputs, kernel, scale, offset and the slopes of the outputs, in float64."""
    random = np.random.RandomState(seed)
    return (
        random.normal(mean, 1.0, shape),
        random.normal(size=(1, 1, shape[-1], filters)) / np.sqrt(shape[-1]),
        random.uniform(0.5, 1.5, filters),
        random.normal(size=filters),
        random.normal(size=(*shape[:3], filters)),
    )


def one_after_the_other(inputs, kernel, strides, gamma, beta, epsilon):
    inputs = inputs[:, :: strides[0], :: strides[1]]
    outputs = tf.einsum("bhwc,cf->bhwf", inputs, kernel[0, 0])
    mean, variance = tf.nn.moments(outputs, axes=[0, 1, 2])
    return (outputs - mean) * tf.math.rsqrt(variance + epsilon) * gamma + beta, mean, variance


def with_gradients(convolution, arrays, dtype, strides=(1, 1)):
    inputs, kernel, gamma, beta, slopes = (tf.cast(x, dtype) for x in arrays)
    slopes = slopes[:, :: strides[0], :: strides[1]]
    with tf.GradientTape() as tape:
        tape.watch([inputs, kernel, gamma, beta])
        outputs, mean, variance = convolution(inputs, kernel, strides, gamma, beta, epsilon=EPSILON)
    gradients = tape.gradient(outputs, [inputs, kernel, gamma, beta], slopes)
    return outputs, mean, variance, *gradients


def compare(arrays, tolerance, run=with_gradients, **settings):
    """With float64, of which `tolerance` is a share of the largest value."""
    actual = run(normalized_convolution.convolution, arrays, tf.float32, **settings)
    expected = with_gradients(one_after_the_other, arrays, tf.float64, **settings)
    for a, b in zip(actual, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max())


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (2, 1)])
def test_outputs_statistics_and_gradients_are_those_of_one_after_the_other(strides, compiled):
    run = tf.function(with_gradients) if compiled else with_gradients
    # Sums of some hundred numbers in float32.
    compare(values((3, 7, 6, 8), filters=24), tolerance=2e-6, run=run, strides=strides)


def test_a_large_mean_of_the_inputs_costs_no_precision():
    # What is left is the rounding of the inputs and of their mean, 100 to some 4e-6. One after the
    # other in float32, the gradient by the kernel is off by 2e-3.
    compare(values((4, 8, 8, 8), filters=16, mean=100.0), tolerance=1e-4)


def test_gradients_can_be_differentiated():
    arrays = values((2, 4, 4, 3), filters=5)

    def second(convolution, dtype):
        inputs, kernel, gamma, beta, slopes = (tf.constant(x, dtype) for x in arrays)
        with tf.GradientTape() as outer:
            outer.watch(kernel)
            with tf.GradientTape() as inner:
                inner.watch(inputs)
                outputs = convolution(inputs, kernel, (1, 1), gamma, beta, epsilon=EPSILON)[0]
                loss = tf.reduce_sum(slopes * outputs**2)
            slope = tf.reduce_sum(inner.gradient(loss, inputs) ** 2)
        return outer.gradient(slope, kernel)

    expected = second(one_after_the_other, tf.float64)
    actual = second(normalized_convolution.convolution, tf.float32)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_widening_is_worth_it_where_there_are_many_outputs():
    def is_faster(batch, side, channels, filters, strides=(1, 1)):
        inputs, kernel = (
            tf.zeros([batch, side, side, channels]),
            tf.zeros([1, 1, channels, filters]),
        )
        return normalized_convolution.is_faster(inputs, kernel, strides)

    assert is_faster(16, 64, 16, 96)  # measured: 1.6 times as fast
    assert is_faster(16, 32, 64, 256)  # 1.8
    assert is_faster(16, 16, 128, 512)  # 1.4
    assert not is_faster(16, 4, 512, 2048)  # half as fast
    assert not is_faster(16, 4, 160, 960)  # 0.9
    assert not is_faster(16, 16, 144, 24)
    assert not is_faster(1, 4, 16, 64)
    assert not is_faster(16, 16, 128, 512, strides=(8, 8))


def test_unknown_sizes_are_left_alone():
    function = tf.function(
        lambda x: tf.constant(normalized_convolution.is_faster(x, tf.zeros([1, 1, 16, 96]), (1, 1)))
    )
    unknown = function.get_concrete_function(tf.TensorSpec([None, 64, 64, 16], tf.float32))
    assert not unknown(tf.zeros([16, 64, 64, 16]))
