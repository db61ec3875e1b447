import numpy as np
import pytest

from hortus.testing.open_sizes import call_with_open_sizes
from hortus.vision.modeling.layers.resampling.spatial_pyramid_pooling import SpatialPyramidPooling


def test_a_window_larger_than_the_features_is_all_of_them():
    windowed = SpatialPyramidPooling(4, [2], pool_size=[100, 100])
    pooled = SpatialPyramidPooling(4, [2])
    for layer in (windowed, pooled):
        layer.build((None, None, None, 3))
    pooled.set_weights(windowed.get_weights())
    features = np.random.RandomState(0).normal(size=(1, 5, 7, 3)).astype("float32")
    # Means of 35 numbers, in another order.
    np.testing.assert_allclose(
        np.asarray(windowed(features)), np.asarray(pooled(features)), atol=1e-6
    )


@pytest.mark.parametrize("size", [(2, 9), (8, 3), (9, 13), (1, 1)])
def test_sizes_known_late_give_the_same_on_tensorflow(size):
    layer = SpatialPyramidPooling(4, [2], pool_size=[4, 6])
    features = np.random.RandomState(0).normal(size=(1, *size, 3)).astype("float32")
    known = np.asarray(layer(features))
    late = np.asarray(call_with_open_sizes(layer, features))
    # Means of 24 numbers, in another order.
    np.testing.assert_allclose(late, known, atol=1e-6)


def test_regularizers_of_depthwise_kernels():
    def losses(**kwargs):
        layer = SpatialPyramidPooling(
            4, [2, 3], use_depthwise_convolution=True, kernel_regularizer="l2", **kwargs
        )
        layer.build((None, 8, 8, 3))
        return len(layer.losses)

    assert losses() == 5
    assert losses(regularize_depthwise=True) == 7
