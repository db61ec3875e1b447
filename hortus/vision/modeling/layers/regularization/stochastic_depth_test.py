import keras
import numpy as np
import pytest

from hortus.vision.modeling.layers.regularization.stochastic_depth import (
    StochasticDepth,
    stochastic_depth_rate,
)


def test_examples_are_dropped_whole_and_the_mean_stays():
    layer = StochasticDepth(0.25, seed=3)
    ones = np.ones([4000, 2, 2, 1], "float32")
    outputs = keras.ops.convert_to_numpy(layer(ones, training=True))
    by_example = outputs.reshape(len(ones), -1)
    assert set(np.unique(by_example)) == {np.float32(0), np.float32(1 / 0.75)}
    assert np.all(by_example == by_example[:, :1])
    # The standard deviation of the mean is sqrt(0.25 / 0.75 / 4000) = 0.009.
    assert abs(outputs.mean() - 1) < 0.04


def test_inference_keeps_everything():
    x = np.ones([3, 2], "float32")
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(StochasticDepth(0.9)(x)), x)


def test_the_rate_grows_with_depth():
    assert [stochastic_depth_rate(0.2, index, 4) for index in (1, 2, 4)] == [0.05, 0.1, 0.2]
    with pytest.raises(ValueError, match="less than 1, got 1"):
        StochasticDepth(1.0)
