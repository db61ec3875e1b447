import numpy as np
import tensorflow as tf

from hortus.vision.dataloaders import preprocess


def test_about_half_are_flipped_and_all_parts_together():
    image = tf.reshape(tf.range(24), [2, 4, 3])
    boxes = tf.constant([[0.0, 0.1, 0.5, 0.4]])
    masks = tf.reshape(tf.range(8), [1, 2, 4])
    flips = 0
    for i in range(100):
        new_image, new_boxes, new_masks = preprocess.random_horizontal_flip(
            image, boxes, masks, seed=[0, i]
        )
        flipped = bool(np.any(new_image != image))
        np.testing.assert_array_equal(new_image, image[:, ::-1] if flipped else image)
        np.testing.assert_array_equal(new_masks, masks[:, :, ::-1] if flipped else masks)
        expected = [[0.0, 0.6, 0.5, 0.9]] if flipped else boxes
        np.testing.assert_allclose(new_boxes, expected, atol=1e-6)
        flips += flipped
    assert 30 < flips < 70  # 4 standard deviations around 50


def test_parts_that_are_not_given_stay_none():
    image = tf.zeros([2, 2, 3])
    assert preprocess.random_vertical_flip(image, prob=1.0)[1:] == (None, None)


def test_masks_with_a_channel_are_flipped_too():
    masks = tf.reshape(tf.range(8), [1, 2, 4, 1])
    np.testing.assert_array_equal(preprocess.vertical_flip_masks(masks), masks[:, ::-1])
    np.testing.assert_array_equal(preprocess.horizontal_flip_masks(masks), masks[:, :, ::-1])
