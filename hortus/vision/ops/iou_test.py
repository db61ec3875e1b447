import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.ops import iou


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/boxes.npz")


def same(actual, expected):
    # float32 rounding of areas up to 65536, divided
    np.testing.assert_allclose(ops.convert_to_numpy(actual), expected, rtol=2e-6, atol=1e-6)


def test_iou_equals_reference(golden):
    same(iou.iou(golden["boxes_a"], golden["boxes_b"]), golden["iou_similarity_unbatched"])
    padded = iou.padded_iou(golden["boxes_a"], golden["boxes_b_padded_minus1"])
    same(padded, golden["bbox_overlap"])
    batched = iou.padded_iou(golden["boxes_a"][None], golden["boxes_b_padded_minus1"][None])
    same(batched, golden["iou_similarity_batched_masked"])


def test_generalized_iou_equals_reference(golden):
    actual = iou.generalized_iou(golden["boxes_a"], golden["boxes_b"])
    same(actual, golden["bbox_generalized_overlap"])


def test_intersection_over_area_equals_reference(golden):
    actual = iou.intersection_over_area(golden["boxes_a"], golden["boxes_b"])
    key = "bbox_intersection_over_area"
    same(actual, golden[key])


def test_empty_boxes_overlap_nothing():
    boxes = np.array([[1, 1, 1, 1], [3, 3, 2, 2], [0, 0, 2, 2]], "float32")
    same(iou.iou(boxes, boxes), np.diag([0.0, 0.0, 1.0]))
    assert np.isfinite(ops.convert_to_numpy(iou.generalized_iou(boxes, boxes))).all()
    assert np.isfinite(ops.convert_to_numpy(iou.intersection_over_area(boxes, boxes))).all()


def test_bounds_of_generalized_iou():
    boxes = np.array([[0, 0, 1, 1]], "float32")
    others = np.array([[0, 0, 1, 1], [0, 1, 1, 2], [99, 99, 100, 100]], "float32")
    same(iou.generalized_iou(boxes, others), [[1.0, 0.0, -(10000 - 2) / 10000]])
