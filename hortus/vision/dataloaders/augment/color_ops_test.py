import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageEnhance, ImageOps

from hortus.vision.dataloaders.augment import color_ops


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(20, 220, [32, 40, 3]).astype(np.uint8)


# Pillow is an independent implementation. Blends round there and are cut off here: 1 of 255.
PILLOW = {
    "autocontrast": (color_ops.autocontrast, ImageOps.autocontrast, 1),
    "equalize": (color_ops.equalize, ImageOps.equalize, 0),
    "invert": (color_ops.invert, ImageOps.invert, 0),
    "posterize": (lambda x: color_ops.posterize(x, 3), lambda x: ImageOps.posterize(x, 3), 0),
    "solarize": (lambda x: color_ops.solarize(x, 90), lambda x: ImageOps.solarize(x, 90), 0),
    "brightness": (
        lambda x: color_ops.brightness(x, 1.3),
        lambda x: ImageEnhance.Brightness(x).enhance(1.3),
        1,
    ),
    "color": (
        lambda x: color_ops.color(x, 0.3),
        lambda x: ImageEnhance.Color(x).enhance(0.3),
        2,  # two weighings of red, green and blue
    ),
    "sharpness": (
        lambda x: color_ops.sharpness(x, 1.7),
        lambda x: ImageEnhance.Sharpness(x).enhance(1.7),
        2,
    ),
}


@pytest.mark.parametrize("name", PILLOW)
def test_equals_pillow(image, name):
    ours, theirs, tolerance = PILLOW[name]
    expected = np.asarray(theirs(Image.fromarray(image)), np.int32)
    np.testing.assert_allclose(ours(tf.constant(image)), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["color", "contrast", "brightness", "sharpness"])
def test_factor_one_is_the_image(image, name):
    # Not exactly: the mean is subtracted and added again in float32.
    result = getattr(color_ops, name)(tf.constant(image), 1.0)
    np.testing.assert_allclose(result, image.astype(int), rtol=0, atol=1)


def test_images_of_one_colour_stay():
    flat = tf.fill([5, 6, 3], tf.constant(77, tf.uint8))
    for operation in (color_ops.autocontrast, color_ops.equalize):
        np.testing.assert_array_equal(operation(flat), flat)


def test_no_bits_are_black_and_all_bits_the_image(image):
    assert np.all(color_ops.posterize(tf.constant(image), 0) == 0)
    np.testing.assert_array_equal(color_ops.posterize(tf.constant(image), tf.constant(8)), image)


def test_blending_beyond_the_images_is_cut_off():
    black, white = tf.zeros([1, 1, 3], tf.uint8), tf.fill([1, 1, 3], tf.constant(255, tf.uint8))
    assert np.all(color_ops.blend(black, white, 1.5) == 255)
    assert np.all(color_ops.blend(white, black, 1.5) == 0)


def test_blur_keeps_the_mean_and_smooths(image):
    blurred = color_ops.gaussian_blur(tf.constant(image), 1.0).numpy()
    assert blurred.std() < 0.6 * image.std()
    assert abs(blurred.mean() - image.mean()) < 1.0
    np.testing.assert_array_equal(color_ops.gaussian_blur(tf.constant(image), 0.01), image)


@pytest.mark.parametrize("threshold", [0, 1, 128, 255, 256])
@pytest.mark.parametrize("addition", [0, 110, 300, -90, -300])
def test_thresholds_and_additions_at_their_ends(threshold, addition):
    values = np.arange(256)
    image = tf.constant(np.tile(values.astype(np.uint8)[:, None, None], [1, 2, 3]))
    added = np.where(values < threshold, np.clip(values + addition, 0, 255), values)
    result = color_ops.solarize_add(image, tf.constant(addition), tf.constant(threshold))
    np.testing.assert_array_equal(result[:, 1, 2], added)
    inverted = np.where(values < threshold, values, 255 - values)
    np.testing.assert_array_equal(color_ops.solarize(image, threshold)[:, 0, 1], inverted)
