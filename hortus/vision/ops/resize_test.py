import keras
import numpy as np
import pytest
from keras import ops

from hortus.vision.ops import resize

IMAGES = np.random.RandomState(0).normal(size=(2, 6, 5, 3)).astype("float32")


def as_numpy(x):
    return np.asarray(ops.convert_to_numpy(x))


@pytest.mark.parametrize("size", [(12, 10), (3, 7), (6, 5)])
def test_sizes_known_late_make_no_difference(size):
    known = as_numpy(resize.resize(IMAGES, *size))
    late = as_numpy(resize.resize(IMAGES, *(ops.convert_to_tensor(side) for side in size)))
    # products of matrices in float32
    np.testing.assert_allclose(late, known, rtol=1e-5, atol=1e-6)


def test_nearest_pixels():
    values = np.arange(8).reshape(1, 2, 4, 1)
    found = as_numpy(resize.resize_nearest(values, 4, 2))
    np.testing.assert_array_equal(found[0, ..., 0], [[1, 3], [1, 3], [5, 7], [5, 7]])
    assert found.dtype.kind == "i"


def test_back_to_the_original_size():
    # Both were made to fit into 12 x 10: the first fills 12 x 6 of that, the second all of it.
    info = np.array(
        [
            [[24, 12], [12, 10], [0.5, 0.5], [0, 0]],
            [[12, 10], [12, 10], [1, 1], [0, 0]],
        ],
        "float32",
    )
    found = as_numpy(resize.rescale_to_original(IMAGES, info, 24, 14))
    enlarged = keras.ops.image.resize(IMAGES, (12, 10), interpolation="bilinear")
    first = keras.ops.image.resize(enlarged[:1, :, :6], (24, 12), interpolation="bilinear")
    np.testing.assert_allclose(found[0, :, :12], as_numpy(first)[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1, :12, :10], as_numpy(enlarged)[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[0, :, 12], found[0, :, 11])


def test_back_from_a_crop():
    # The middle third of a row of 9 pixels, shown as it is.
    row = np.array([3.0, 4.0, 5.0], "float32").reshape(1, 1, 3, 1)
    info = np.array([[[1, 9], [1, 3], [1, 1], [0, 3]]], "float32")
    found = as_numpy(resize.rescale_to_original(row, info, 1, 9))
    np.testing.assert_allclose(found.ravel(), [3, 3, 3, 3, 4, 5, 5, 5, 5])
