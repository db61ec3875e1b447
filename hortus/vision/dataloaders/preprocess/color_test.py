import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.dataloaders import preprocess


@pytest.fixture
def image():
    return tf.cast(tf.random.stateless_uniform([16, 16, 3], [1, 2], 60, 120, tf.int32), tf.uint8)


def grey(image):
    return tf.image.rgb_to_grayscale(tf.cast(image, tf.float32)).numpy()


def test_brightness_is_one_factor_for_all_pixels(image):
    factors = []
    for i in range(30):
        result = preprocess.random_brightness(image, 0.4, seed=[0, i]).numpy()
        ratio = result / image.numpy()
        # Values are whole numbers of at least 36: one step is less than 3 %.
        assert ratio.max() - ratio.min() < 0.03
        factors.append(ratio.mean())
    assert 0.58 < min(factors) < 0.7 and 1.3 < max(factors) < 1.42


def test_contrast_keeps_the_mean_and_scales_the_rest(image):
    result = preprocess.random_contrast(image, 0.5, seed=[0, 1])
    assert result.dtype == tf.uint8
    assert abs(grey(result).mean() - grey(image).mean()) < 1.5
    assert abs(grey(result).std() / grey(image).std() - 1) > 0.05


def test_saturation_keeps_grey_and_scales_colour(image):
    def colour(image):
        return np.std(tf.cast(image, tf.float32) - grey(image))

    ratios = []
    for i in range(20):
        result = preprocess.random_saturation(image, 0.5, seed=[0, i])
        assert np.abs(grey(result) - grey(image)).max() < 2.0  # rounding of three channels
        ratios.append(colour(result) / colour(image))
    assert 0.48 < min(ratios) < 0.7 and 1.3 < max(ratios) < 1.52


def test_jitter_is_off_at_zero_and_determined_by_its_seed(image):
    np.testing.assert_array_equal(preprocess.color_jitter(image), image)
    results = [
        preprocess.color_jitter(image, 0.4, 0.4, 0.4, seed=s) for s in ([1, 1], [1, 1], [1, 2])
    ]
    np.testing.assert_array_equal(results[0], results[1])
    assert np.any(results[0] != results[2])


def test_colour_never_leaves_the_range():
    image = tf.constant([[[0, 128, 255]]], tf.uint8)
    values = [preprocess.color_jitter(image, 1.0, 1.0, 1.0, seed=[0, i]).numpy() for i in range(20)]
    # A wrap around would turn 255 into something near 0.
    assert all(value[0, 0, 2] >= value[0, 0, 0] for value in values)


def test_jpeg_quality_changes_now_and_then(image):
    assert np.all(preprocess.random_jpeg_quality(image, prob_to_apply=0.0) == image)
    changed = preprocess.random_jpeg_quality(image, 20, 20, prob_to_apply=1.0)
    expected = tf.io.decode_jpeg(tf.io.encode_jpeg(image, quality=20))
    np.testing.assert_array_equal(changed, expected)
