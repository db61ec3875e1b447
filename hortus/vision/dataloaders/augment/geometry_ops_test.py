import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.dataloaders.augment import geometry_ops

IMAGE = tf.constant(np.random.default_rng(0).integers(0, 255, [20, 30, 3]).astype(np.uint8))


def test_shifts_move_pixels_and_mirror_at_the_border():
    moved = geometry_ops.translate_x(IMAGE, 4)
    np.testing.assert_array_equal(moved[:, :-4], IMAGE[:, 4:])
    np.testing.assert_array_equal(moved[:, -4:], IMAGE[:, -4:][:, ::-1])
    np.testing.assert_array_equal(geometry_ops.translate_y(IMAGE, -3)[3:], IMAGE[:-3])


def test_turning_by_a_half_turn_and_back():
    turned = geometry_ops.rotate(IMAGE, 180.0)
    np.testing.assert_array_equal(turned, IMAGE[::-1, ::-1])
    square = IMAGE[:, :20]
    np.testing.assert_array_equal(geometry_ops.rotate(square, 90.0), np.rot90(square))


def test_shear_moves_rows_by_their_number():
    sheared = geometry_ops.shear_x(IMAGE, 1.0)
    for y in (0, 3, 9):
        np.testing.assert_array_equal(sheared[y, : 30 - y], IMAGE[y, y:])


def test_cutout_covers_a_square_within_the_image():
    covered = geometry_ops.cutout(IMAGE, 3, tf.constant([2, 10])).numpy()
    expected = IMAGE.numpy()
    expected[0:5, 7:13] = 128
    np.testing.assert_array_equal(covered, expected)
    np.testing.assert_array_equal(geometry_ops.cutout(IMAGE, 0, tf.constant([2, 10])), IMAGE)


@pytest.mark.parametrize(
    "pixels", [0.0, 1.0, -7.0, 3.5, -3.5, 0.4, -0.6, 12.0, -25.5, 47.25, 100.0]
)
def test_shifts_are_those_of_the_general_map(pixels):
    image = tf.constant(np.random.default_rng(0).integers(0, 256, [9, 12, 3]).astype(np.uint8))
    along_x = geometry_ops.transform(image, [1.0, 0.0, pixels, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(geometry_ops.translate_x(image, pixels), along_x)
    along_y = geometry_ops.transform(image, [1.0, 0.0, 0.0, 0.0, 1.0, pixels])
    np.testing.assert_array_equal(geometry_ops.translate_y(image, pixels), along_y)
