import keras
import numpy as np

from hortus.vision.modeling.layers.blocks.squeeze_excitation import SqueezeExcitation


def test_channels_are_weighed_by_their_means():
    x = np.random.default_rng(0).normal(size=[2, 3, 3, 4]).astype("float32")
    layer = SqueezeExcitation(4, 0.5)
    outputs = keras.ops.convert_to_numpy(layer(x))
    reduce, bias, expand, last_bias = layer.get_weights()
    assert reduce.shape == (1, 1, 4, 2)
    means = x.mean(axis=(1, 2))
    hidden = np.maximum(means @ reduce[0, 0] + bias, 0)
    gate = 1 / (1 + np.exp(-(hidden @ expand[0, 0] + last_bias)))
    # Two small products in float32.
    np.testing.assert_allclose(outputs, x * gate[:, None, None], rtol=1e-4, atol=1e-5)


def test_the_width_of_the_bottleneck_is_rounded():
    layer = SqueezeExcitation(20, 0.25, divisible_by=8)
    layer.build((None, 2, 2, 20))
    assert layer.reduce.filters == 8
