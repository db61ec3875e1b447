import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.ops import box_coder

WEIGHTS = (10.0, 10.0, 5.0, 5.0)


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/boxes.npz")


def same(actual, expected, **tolerance):
    np.testing.assert_allclose(ops.convert_to_numpy(actual), expected, **tolerance)


@pytest.mark.parametrize(("weights", "suffix"), [(None, ""), (WEIGHTS, "_w10_10_5_5")])
def test_equals_reference(golden, weights, suffix):
    anchors = golden["anchors"]
    codes = box_coder.encode(golden["boxes_a"], anchors, weights)
    # float32 rounding of coordinates up to 256 and codes up to 20
    same(codes, golden[f"encode_boxes{suffix}"], atol=1e-5)
    boxes = box_coder.decode(golden["raw_codes"], anchors, weights)
    # the first box is as large as a box may grow, 5,400 pixels
    same(boxes, golden[f"decode_boxes{suffix}"], rtol=1e-6, atol=2e-4)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_decoding_gives_back_what_was_encoded(golden, weights):
    anchors = golden["anchors"]
    codes = box_coder.encode(golden["boxes_a"], anchors, weights)
    same(box_coder.decode(codes, anchors, weights), golden["boxes_a"], atol=1e-4)


def test_all_codes_are_finite():
    boxes = np.array([[3, 3, 3, 3], [0, 0, 5, 5]], "float32")
    anchors = np.array([[0, 0, 10, 20], [0, 0, 0, 0]], "float32")
    codes = ops.convert_to_numpy(box_coder.encode(boxes, anchors))
    assert np.isfinite(codes).all()
    same(codes[0], [-0.2, -0.35, np.log(1e-9), np.log(5e-10)], rtol=1e-6)


def test_bfloat16_codes_are_decoded_in_float32():
    codes = ops.cast([[0.5, 0.25, 0.0, 0.0]], "bfloat16")
    boxes = box_coder.decode(codes, np.array([[1000, 1000, 1001, 1003]], "float32"))
    same(boxes, [[1000.5, 1000.75, 1001.5, 1003.75]])


def test_weights_are_four():
    with pytest.raises(ValueError, match="four weights"):
        box_coder.encode(np.zeros((1, 4)), np.ones((1, 4)), [1.0, 2.0])
