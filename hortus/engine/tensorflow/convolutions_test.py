import numpy as np
import pytest
import tensorflow as tf

from hortus.engine.tensorflow import convolutions

UNLUCKY, NARROW = 1024, 24


@pytest.mark.parametrize("sizes", [(UNLUCKY, NARROW), (NARROW, UNLUCKY), (UNLUCKY, 512), (8, 9)])
def test_sums_of_products_are_exact(sizes):
    random = np.random.RandomState(0)
    # Small whole numbers, whose sums are exact in whatever order.
    inputs, slopes = (random.randint(-8, 9, [30, width]).astype("float32") for width in sizes)
    found = convolutions.sum_of_products(tf.constant(inputs), tf.constant(slopes))
    np.testing.assert_array_equal(found.numpy(), inputs.T @ slopes)


@pytest.mark.parametrize(("channels", "filters"), [(UNLUCKY, NARROW), (NARROW, UNLUCKY)])
def test_gradients_of_unlucky_1x1_convolutions(channels, filters):
    random = np.random.RandomState(0)
    inputs = tf.constant(random.normal(size=[2, 3, 4, channels]), tf.float32)
    kernel = tf.constant(random.normal(size=[1, 1, channels, filters]), tf.float32)
    weights = tf.constant(random.normal(size=[2, 3, 4, filters]), tf.float32)

    def gradients(convolve):
        # The gradient of the gradient too, as some penalties ask for it.
        with tf.GradientTape() as outer:
            outer.watch([inputs, kernel])
            with tf.GradientTape() as tape:
                tape.watch([inputs, kernel])
                loss = tf.reduce_sum(tf.square(convolve()) * weights)
            first = tape.gradient(loss, [inputs, kernel])
            length = sum(tf.reduce_sum(tf.square(each)) for each in first)
        return [*first, *outer.gradient(length, [inputs, kernel])]

    found = gradients(lambda: convolutions.convolution_1x1(inputs, kernel, (1, 1)))
    expected = gradients(lambda: tf.nn.conv2d(inputs, kernel, strides=1, padding="SAME"))
    for one, other in zip(found, expected, strict=True):
        # Sums of up to 1024 products in another order, each rounded to 1e-7 of the largest.
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * np.abs(other).max())
