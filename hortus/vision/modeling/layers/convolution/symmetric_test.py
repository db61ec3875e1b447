import keras
import numpy as np
import pytest
from keras import ops

from hortus.testing import run_under_engine
from hortus.vision.modeling.layers.convolution.symmetric import (
    SymmetricConv2D,
    SymmetricDepthwiseConv2D,
    SymmetricMaxPooling2D,
    check_padding,
)

LAYERS = {
    "conv": lambda: SymmetricConv2D(2, 3, strides=2, use_bias=False),
    "wide": lambda: SymmetricConv2D(2, 7, strides=2),
    "depthwise": lambda: SymmetricDepthwiseConv2D(5, strides=2, use_bias=False),
    "pool": lambda: SymmetricMaxPooling2D(3, strides=2),
}


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("size", [8, 9])
def test_mirrored_images_give_mirrored_features(kind, size):
    # Where the size is odd, the outputs lie around the middle: with padding alike on both sides,
    # a mirrored kernel on a mirrored image gives the mirrored answer.
    layer = LAYERS[kind]()
    images = np.random.default_rng(0).normal(size=(1, size, size, 3)).astype("float32")
    plain = ops.convert_to_numpy(layer(images))
    assert plain.shape == layer.compute_output_shape(images.shape)
    assert plain.shape[1:3] == (-(-size // 2),) * 2
    if size % 2:
        for weight in layer.weights:
            if len(weight.shape) == 4:
                weight.assign(ops.flip(weight, (0, 1)))
        mirrored = ops.convert_to_numpy(layer(images[:, ::-1, ::-1]))
        np.testing.assert_allclose(mirrored[:, ::-1, ::-1], plain, atol=1e-5)


def test_even_sizes_are_padded_on_both_sides():
    layer = SymmetricConv2D(1, 3, strides=2, use_bias=False, kernel_initializer="ones")
    image = np.arange(16, dtype="float32").reshape(1, 4, 4, 1)
    # The first window sees a row and a column of zeros and the four numbers at the corner.
    expected = [[0 + 1 + 4 + 5, 1 + 2 + 3 + 5 + 6 + 7], [4 + 5 + 8 + 9 + 12 + 13, 0]]
    expected[1][1] = sum(int(image[0, i, j, 0]) for i in (1, 2, 3) for j in (1, 2, 3))
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(image))[0, :, :, 0], expected)


def test_pooling_ignores_the_border_below_zero():
    image = -np.ones((1, 4, 4, 1), "float32")
    assert float(ops.max(SymmetricMaxPooling2D(3, strides=2)(image))) == -1.0


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_are_rebuilt_from_their_config(kind):
    layer = LAYERS[kind]()
    images = np.ones((1, 6, 6, 3), "float32")
    expected = ops.convert_to_numpy(layer(images))
    copy = type(layer).from_config(layer.get_config())
    copy.build(images.shape)
    for old, new in zip(layer.weights, copy.weights, strict=True):
        new.assign(old)
    np.testing.assert_array_equal(ops.convert_to_numpy(copy(images)), expected)


def test_sizes_may_be_open():
    assert LAYERS["conv"]().compute_output_shape((None, None, None, 3)) == (None, None, None, 2)
    inputs = keras.Input((None, None, 3))
    assert LAYERS["pool"]()(inputs).shape == (None, None, None, 3)


def test_another_padding_is_refused():
    with pytest.raises(ValueError, match="'same', 'symmetric'"):
        check_padding("valid")


def test_on_jax():
    run_under_engine("jax", __file__, select="mirrored or both_sides or below_zero")
