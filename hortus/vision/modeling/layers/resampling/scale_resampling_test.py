import keras
import numpy as np
import pytest
from keras import ops

from hortus.vision.modeling.layers.resampling.scale_resampling import (
    DepthwiseScaleResampling,
    ScaleResampling,
)

MAKERS = [
    lambda coarser_by: ScaleResampling(6, 4, coarser_by, name="resample"),
    lambda coarser_by: DepthwiseScaleResampling(6, coarser_by, name="resample"),
]


def features(side=8):
    return np.random.RandomState(0).normal(size=(2, side, side, 5)).astype("float32")


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("coarser_by", "side"), [(-2, 32), (-1, 16), (0, 8), (1, 4), (3, 1)])
def test_sizes(make, coarser_by, side):
    layer = make(coarser_by)
    assert layer.compute_output_shape((None, 8, 8, 5)) == (None, side, side, 6)
    assert layer.compute_output_shape((None, None, None, 5)) == (None, None, None, 6)
    assert layer(features()).shape == (2, side, side, 6)
    odd = layer(features(side=7))
    assert odd.shape == layer.compute_output_shape((2, 7, 7, 5))


@pytest.mark.parametrize("make", MAKERS)
def test_it_repeats_pixels_upwards_and_normalises_by_the_batch(make):
    layer = make(-1)
    outputs = ops.convert_to_numpy(layer(features(), training=True))
    for row in (0, 1):
        for column in (0, 1):
            np.testing.assert_array_equal(outputs[:, row::2, column::2], outputs[:, ::2, ::2])
    # Rounding of float32 means of 128 numbers of about 1.
    np.testing.assert_allclose(outputs.mean((0, 1, 2)), 0.0, atol=1e-6)


def test_the_order_of_repeating_and_convolving_does_not_matter():
    layer, same = ScaleResampling(6, 6, -1), ScaleResampling(6, 6, 0)
    x = features()
    layer(x), same(x)
    same.set_weights(layer.get_weights())
    upsampled = keras.layers.UpSampling2D(2)(x)
    for training in (True, False):
        late, early = layer(x, training=training), same(upsampled, training=training)
        # The same sums of some hundred numbers in another order.
        np.testing.assert_allclose(
            ops.convert_to_numpy(late), ops.convert_to_numpy(early), atol=1e-5
        )


@pytest.mark.parametrize("make", MAKERS)
def test_config_round_trip(make):
    layer = make(2)
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    layer.build((None, 8, 8, 5)), again.build((None, 8, 8, 5))
    assert [w.path for w in again.weights] == [w.path for w in layer.weights]
