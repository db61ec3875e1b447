import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.ops import boxes as box_ops

SIZE = (256.0, 200.0)


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/boxes.npz")


def same(actual, expected, **tolerance):
    # float32 rounding of a few operations on coordinates up to 256
    tolerance = {"rtol": 1e-6, "atol": 1e-5, **tolerance}
    np.testing.assert_allclose(ops.convert_to_numpy(actual), expected, **tolerance)


@pytest.mark.parametrize(
    ("key", "function"),
    [
        ("clip_boxes_100x120", lambda b: box_ops.clip(b, (100, 120))),
        ("normalize_boxes_256x200", lambda b: box_ops.normalize(b, SIZE)),
        ("yxyx_to_xywh", box_ops.to_xywh),
        ("yxyx_to_cycxhw", box_ops.to_cycxhw),
        ("cycxhw_to_yxyx_of_a", box_ops.from_cycxhw),
        ("compute_outer_boxes_s1.25_256x256", lambda b: box_ops.outer(b, (256, 256), 1.25)),
    ],
)
def test_equals_reference(golden, key, function):
    same(function(golden["boxes_a"]), golden[key])


def test_flips_and_denormalize_equal_reference(golden):
    # The flipped boxes were normalised by 256 x 256.
    shares = golden["boxes_a"] / 256
    same(box_ops.flip_left_right(shares), golden["horizontal_flip_boxes_norm"])
    same(box_ops.flip_up_down(shares), golden["vertical_flip_boxes_norm"])
    pixels = box_ops.denormalize(shares, SIZE)
    same(pixels, golden["denormalize_boxes_256x200"])
    flipped = box_ops.denormalize(box_ops.flip_left_right(shares), SIZE)
    same(box_ops.flip_left_right(pixels, SIZE), flipped)


def test_filters_equal_reference(golden):
    boxes, scores = golden["boxes_a"][None], golden["scores"][None]
    large = box_ops.filter_by_size(boxes, scores, [[256, 256]], 40.0)
    same(large[0], golden["filter_boxes_min40/boxes"])
    same(large[1], golden["filter_boxes_min40/scores"])
    good = box_ops.filter_by_score(boxes, scores, 0.5)
    same(good[0], golden["filter_boxes_by_scores0.5/boxes"])
    same(good[1], golden["filter_boxes_by_scores0.5/scores"])


def test_filter_by_size_wants_the_centre_inside():
    boxes = np.array([[90, 0, 120, 10], [90, 0, 104, 10], [96, 5, 104, 9]], "float32")
    _, scores = box_ops.filter_by_size(boxes, np.ones(3, "float32"), (100, 100))
    same(scores, [0, 1, 0])


def test_top_k_equals_reference(golden):
    boxes, scores = golden["boxes_a"][None], golden["scores"][None]
    best, chosen = box_ops.top_k(scores, 5, boxes)
    same(best, golden["top_k5/scores"])
    same(chosen, golden["top_k5/boxes"])
    assert box_ops.top_k(scores, 99)[0].shape == (1, 12)


def test_take_picks_rows_of_each_image():
    values = np.arange(2 * 3 * 2 * 2).reshape(2, 3, 2, 2)
    taken = box_ops.take(values, np.array([[2, 0], [1, 1]]))
    same(taken, np.stack([values[0, [2, 0]], values[1, [1, 1]]]))


def test_masks_of_rows(golden):
    boxes = np.array([[0, 0, 5, 5], [1, 1, 1, 4], [-1, -1, -1, -1], [-9, -9, 2, 3]], "float32")
    assert np.array(box_ops.is_nonempty(boxes)).tolist() == [True, False, False, True]
    assert np.array(box_ops.is_padding(boxes)).tolist() == [False, False, True, False]
    same(box_ops.areas(boxes), [25, 0, 0, 11 * 12])
    same(box_ops.areas([[5.0, 5.0, 1.0, 1.0]]), [0])


def test_an_image_size_per_image(golden):
    boxes = np.stack([golden["boxes_a"], golden["boxes_a"]])
    clipped = box_ops.clip(boxes, [[100, 120], [256, 200]])
    same(clipped[0], golden["clip_boxes_100x120"])
    same(clipped[1], box_ops.clip(golden["boxes_a"], SIZE))


def test_conversions_go_back(golden):
    boxes = golden["boxes_a"]
    same(box_ops.from_xywh(box_ops.to_xywh(boxes)), boxes, atol=1e-4)
    same(box_ops.from_cycxhw(box_ops.to_cycxhw(boxes)), boxes, atol=1e-4)


def test_low_precision_is_computed_in_float32():
    boxes = ops.cast([[1.0, 2.0, 3.0, 5.0]], "bfloat16")
    assert box_ops.normalize(boxes, (3, 3)).dtype == ops.zeros(1, "float32").dtype
    same(box_ops.normalize(boxes, (3, 3)), [[1 / 3, 2 / 3, 1, 5 / 3]])


def test_outer_refuses_to_shrink():
    with pytest.raises(ValueError, match=r"scale=0\.5"):
        box_ops.outer(np.zeros((1, 4)), SIZE, 0.5)
