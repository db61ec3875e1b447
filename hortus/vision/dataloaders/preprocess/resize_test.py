import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.dataloaders import preprocess


@pytest.fixture
def image():
    return tf.random.stateless_uniform([60, 80, 3], [1, 2], 0, 256, tf.int32)


def test_random_scale_and_crop_fill_the_window_at_every_place(image):
    infos = []
    for i in range(30):
        result, info = preprocess.resize_and_crop_image(
            image, [32, 32], [40, 40], aug_scale_min=1.0, aug_scale_max=2.0, seed=[0, i]
        )
        assert result.shape == [40, 40, 3]
        assert np.all(result[32:] == 0) and np.all(result[:, 32:] == 0)
        infos.append(info.numpy())
    scales = np.array([info[2, 1] * 80 / 32 for info in infos])
    offsets = np.array([info[3] for info in infos])
    room = np.maximum([info[2] * info[0] - info[1] for info in infos], 0)
    assert 1.0 <= scales.min() < 1.2 and 1.8 < scales.max() <= 2.0
    # Half a pixel for the rounding of the resized size.
    assert np.all(offsets <= room + 0.5) and np.any(offsets > 0)


def test_the_crop_is_where_the_info_says(image):
    result, info = preprocess.resize_and_crop_image(
        image, [32, 32], [32, 32], aug_scale_min=2.0, aug_scale_max=2.0, seed=[3, 4]
    )
    _, _, scale, offset = info.numpy()
    size = np.round(scale * [60, 80]).astype(int)
    top, left = offset.astype(int)
    expected = tf.image.resize(image, size)[top : top + 32, left : left + 32]
    np.testing.assert_array_equal(result, expected)


def test_boxes_and_masks_follow_the_image():
    image = np.zeros([60, 80, 3], np.float32)
    image[20:40, 30:60] = 255
    boxes = tf.constant([[20.0, 30.0, 40.0, 60.0]])
    mask = tf.constant(image[None, :, :, :1] / 255)
    resized, info = preprocess.resize_and_crop_image(
        tf.constant(image), [90, 90], [90, 90], aug_scale_min=1.5, aug_scale_max=1.5, seed=[1, 5]
    )
    box = preprocess.resize_and_crop_boxes(boxes, info[2], info[1], info[3])[0].numpy()
    rows, columns = np.nonzero(resized[..., 0] > 127)
    found = [rows.min(), columns.min(), rows.max() + 1, columns.max() + 1]
    # Edges lie between pixels after resizing.
    np.testing.assert_allclose(box, found, atol=1.0)
    resized_mask = preprocess.resize_and_crop_masks(mask, info[2], [90, 90], info[3])[0, ..., 0]
    assert np.mean((resized_mask > 0.5) == (resized[..., 0] > 127)) > 0.98


def test_sides_turn_with_the_image(image):
    for turned, size in ((image, (48, 64)), (tf.transpose(image, [1, 0, 2]), (64, 48))):
        result, info = preprocess.resize_and_crop_image_by_sides(turned, 48, 70, [72, 72])
        np.testing.assert_array_equal(info[1], size)
        assert result.shape == [72, 72, 3]
        assert np.all(result[size[0] :] == 0) and np.all(result[:, size[1] :] == 0)


def test_sides_with_a_random_scale(image):
    result, info = preprocess.resize_and_crop_image_by_sides(
        image, 30, 50, [64, 64], aug_scale_min=1.5, aug_scale_max=1.5, seed=[0, 0]
    )
    np.testing.assert_array_equal(info[1], [30, 40])
    np.testing.assert_array_equal(info[2] * info[0], [45, 60])
    assert np.all(result[30:] == 0) and np.any(result[:30, :40] > 0)


def test_resize_to_a_size_or_a_shorter_side(image):
    assert preprocess.resize_image(image, (20, 31))[0].shape == [20, 31, 3]
    assert preprocess.resize_image(image, 33)[0].shape == [33, 44, 3]
    assert preprocess.resize_image(image, 33, max_size=40)[0].shape == [30, 40, 3]


def test_the_shape_is_known_in_a_graph():
    dataset = tf.data.Dataset.from_tensors(tf.zeros([5, 7, 3])).map(
        lambda image: preprocess.resize_and_crop_image(image, [8, 8], [16, 16])
    )
    assert dataset.element_spec[0].shape == [16, 16, 3]
