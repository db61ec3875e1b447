import numpy as np
import tensorflow as tf

from hortus.vision.dataloaders import preprocess


def test_pixels_to_shares_and_back():
    boxes = tf.constant([[10.0, 20.0, 30.0, 40.0]])
    shares = preprocess.normalize_boxes(boxes, [100, 200])
    np.testing.assert_allclose(shares, [[0.1, 0.1, 0.3, 0.2]], rtol=1e-6)
    np.testing.assert_allclose(preprocess.denormalize_boxes(shares, [100, 200]), boxes, rtol=1e-6)


def test_boxes_without_area_are_found():
    boxes = tf.constant([[0.0, 0, 1, 1], [1, 1, 1, 5], [2, 2, 1, 3], [0, 3, 2, 4]])
    assert preprocess.nonempty_box_indices(boxes).numpy().tolist() == [0, 3]


def test_source_ids_of_all_kinds():
    ids = preprocess.process_source_id(tf.constant(["42", "-3", "", "img_7.jpg", "000000123"]))
    values = ids.numpy().tolist()
    assert values[:3] == [42, -3, -1] and values[4] == 123
    assert values[3] >= 0
    assert preprocess.process_source_id(tf.constant(8)).numpy() == 8


def test_fixed_size_is_known_in_a_graph():
    dataset = tf.data.Dataset.from_tensors(tf.zeros([3, 4])).map(
        lambda boxes: preprocess.clip_or_pad_to_fixed_size(boxes, 7, -1)
    )
    assert dataset.element_spec.shape == [7, 4]
