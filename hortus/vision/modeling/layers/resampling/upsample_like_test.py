import numpy as np

from hortus.vision.modeling.layers.resampling.upsample_like import UpsampleLike


def test_repeats_and_crops():
    x = np.arange(4, dtype="float32").reshape(1, 2, 2, 1)
    output = np.asarray(UpsampleLike(2)(x, np.zeros((1, 3, 4, 7), "float32")))
    np.testing.assert_array_equal(output[0, :, :, 0], [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3]])


def test_larger_factor():
    x = np.array([[[[1.0], [2.0]]]], "float32")
    output = np.asarray(UpsampleLike(4)(x, np.zeros((1, 4, 8, 1), "float32")))
    np.testing.assert_array_equal(output[0, :, :, 0], [[1, 1, 1, 1, 2, 2, 2, 2]] * 4)
