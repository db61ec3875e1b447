import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.configs import common
from hortus.vision.dataloaders.augment import SSDRandomCrop
from hortus.vision.dataloaders.augment.ssd_random_crop import crop_boxes


def crop_many(crop, count=60):
    image = np.zeros([60, 80, 3], np.uint8)
    image[20:40, 30:60] = 255
    boxes = tf.constant([[20 / 60, 30 / 80, 40 / 60, 60 / 80]])
    dataset = tf.data.Dataset.range(count).map(
        lambda i: crop.distort_with_boxes(tf.constant(image), boxes, [tf.constant(0, tf.int64), i])
    )
    return list(dataset.as_numpy_iterator())


def test_boxes_follow_the_crop():
    kept = 0
    for image, boxes in crop_many(SSDRandomCrop()):
        height, width, _ = image.shape
        if not boxes.any():
            continue
        rows, columns = np.nonzero(image[..., 0])
        found = [rows.min(), columns.min(), rows.max() + 1, columns.max() + 1]
        np.testing.assert_allclose(boxes[0] * [height, width, height, width], found, atol=1e-3)
        kept += 1
    assert kept > 30


def test_an_object_is_covered_as_much_as_asked():
    whole = common.SSDRandomCropParam(min_object_covered=1.0, prob_to_apply=1.0)
    for image, boxes in crop_many(SSDRandomCrop([whole]), 30):
        assert (image[..., 0] > 0).sum() == 20 * 30 and boxes.any()


def test_boxes_with_little_left_become_zero_and_keep_their_place():
    boxes = tf.constant([[0.0, 0.0, 0.4, 0.4], [0.5, 0.5, 1.0, 1.0], [0.2, 0.2, 0.2, 0.2]])
    cropped = crop_boxes(boxes, tf.constant([0.0, 0.0, 0.6, 0.6]), 0.5)
    np.testing.assert_allclose(cropped[0], [0, 0, 2 / 3, 2 / 3], atol=1e-6)
    np.testing.assert_array_equal(cropped[1:], np.zeros([2, 4]))
    with_little = crop_boxes(boxes, tf.constant([0.0, 0.0, 0.6, 0.6]), 0.03)
    assert with_little[1].numpy() == pytest.approx([5 / 6, 5 / 6, 1, 1], abs=1e-6)


def test_the_chance_of_a_crop_holds():
    never = SSDRandomCrop([common.SSDRandomCropParam(prob_to_apply=0.0)])
    assert all(image.shape == (60, 80, 3) for image, _ in crop_many(never, 10))


def test_an_image_without_boxes_stays():
    image, boxes = SSDRandomCrop().distort_with_boxes(tf.ones([6, 8, 3]), tf.zeros([0, 4]))
    assert image.shape == [6, 8, 3] and boxes.shape == [0, 4]
