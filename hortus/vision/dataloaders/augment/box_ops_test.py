import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.dataloaders.augment import box_ops
from hortus.vision.dataloaders.randomness import Rng


def scene():
    """A bright rectangle on black, and its box."""
    image = np.zeros([100, 120, 3], np.uint8)
    image[40:60, 50:80] = 255
    return tf.constant(image), tf.constant([[0.4, 50 / 120, 0.6, 80 / 120]])


@pytest.mark.parametrize(
    ("operation", "argument"),
    [
        (box_ops.rotate_with_bboxes, 25.0),
        (box_ops.rotate_with_bboxes, -90.0),
        (box_ops.shear_x_with_bboxes, 0.25),
        (box_ops.shear_y_with_bboxes, -0.25),
        (box_ops.translate_x_with_bboxes, 17.0),
        (box_ops.translate_y_with_bboxes, -13.0),
    ],
)
def test_boxes_stay_around_what_they_held(operation, argument):
    image, boxes = operation(*scene(), argument)
    rows, columns = np.nonzero(image[..., 0] > 0)
    found = np.array([rows.min(), columns.min(), rows.max() + 1, columns.max() + 1])
    # Corners are cut off to whole pixels, before and after.
    np.testing.assert_allclose(boxes[0] * [100, 120, 100, 120], found, atol=2.01)


def test_a_box_that_leaves_keeps_a_small_part_inside():
    _, boxes = box_ops.translate_x_with_bboxes(*scene(), 200.0)
    ymin, xmin, ymax, xmax = boxes[0].numpy()
    assert xmin == 0 and 0 < xmax - xmin <= 0.06 and ymax - ymin == pytest.approx(0.2)
    _, boxes = box_ops.translate_y_with_bboxes(*scene(), -200.0)
    ymin, _, ymax, _ = boxes[0].numpy()
    assert ymax == pytest.approx(1.0) and ymax - ymin == pytest.approx(0.05)


def test_no_boxes_stay_no_boxes():
    image, _ = scene()
    _, boxes = box_ops.rotate_with_bboxes(image, tf.zeros([0, 4]), 10.0)
    assert boxes.shape == [0, 4]


def test_only_what_is_in_a_box_moves():
    noise = np.random.default_rng(0).integers(0, 255, [40, 48, 3]).astype(np.uint8)
    boxes = tf.constant([[0.1, 0.2, 0.5, 0.6]])
    # A chance of 3 / 3: always.
    result = box_ops.translate_y_only_bboxes(tf.constant(noise), boxes, 5.0, 3.0, Rng([0, 0]))
    changed = np.any(result.numpy() != noise, axis=-1)
    changed[4:21, 9:29] = False
    assert not changed.any()
    np.testing.assert_array_equal(result[4:16, 9:29], noise[9:21, 9:29])
    np.testing.assert_array_equal(result[16:21, 9:29], noise[16:21, 9:29][::-1])


def test_a_box_is_chosen_with_a_third_of_the_probability():
    image = tf.constant(np.random.default_rng(0).integers(0, 255, [8, 8, 3]).astype(np.uint8))
    boxes = tf.constant([[0.0, 0.0, 0.9, 0.9]])
    run = tf.function(
        lambda i: box_ops.translate_y_only_bboxes(
            image, boxes, 3.0, 0.9, Rng([tf.constant(0, tf.int64), i])
        )
    )
    results = [run(tf.constant(i, tf.int64)) for i in range(300)]
    share = np.mean([np.any(result != image) for result in results])
    assert abs(share - 0.3) < 4 * (0.3 * 0.7 / 300) ** 0.5
