import keras
import numpy as np
import pytest
from keras import ops

from hortus.vision.modeling.layers.resampling import resize_like


@pytest.mark.parametrize(("height", "width"), [(9, 7), (3, 4), (5, 2)])
def test_sizes_known_late_give_the_same(height, width):
    images = np.random.RandomState(0).normal(size=(2, 4, 3, 5)).astype("float32")
    known = resize_like.resize(images, height, width)
    late = resize_like.resize(images, ops.convert_to_tensor(height), ops.convert_to_tensor(width))
    # A few float32 products.
    np.testing.assert_allclose(np.asarray(late), np.asarray(known), atol=1e-6)


def test_one_pixel_is_spread():
    images = np.array([[[[3.0]]]], "float32")
    np.testing.assert_array_equal(resize_like.resize(images, 2, 3), np.full((1, 2, 3, 1), 3.0))


def test_in_a_model_of_any_size():
    small, large = keras.Input((None, None, 2)), keras.Input((None, None, 3))
    model = keras.Model([small, large], resize_like.ResizeLike()(small, large))
    assert model.output.shape == (None, None, None, 2)
    output = model([np.zeros((1, 2, 3, 2)), np.zeros((1, 5, 4, 3))])
    assert tuple(output.shape) == (1, 5, 4, 2)
