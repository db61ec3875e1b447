import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.ops import iou, matcher


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/boxes.npz")


@pytest.mark.parametrize("force", [False, True])
def test_match_equals_reference(golden, force):
    similarity = golden["matcher_similarity"]
    key = f"BoxMatcher_t0.4_0.6_i-1_-2_1_force{force}"
    for values in (similarity, similarity[None]):
        match = matcher.match(values, (0.4, 0.6), (-1, -2, 1), force=force)
        np.testing.assert_array_equal(np.squeeze(match.indices), golden[f"{key}/indices"])
        np.testing.assert_array_equal(np.squeeze(match.indicators), golden[f"{key}/indicators"])


def test_match_boxes_equals_reference(golden):
    gt_classes = np.concatenate([np.arange(1, 8), [-1, -1]]).astype("int32")
    match = matcher.match_boxes(
        golden["boxes_a"][None], golden["boxes_b_padded_minus1"][None], gt_classes[None]
    )
    for name in ("boxes", "classes", "indices"):
        np.testing.assert_array_equal(
            ops.convert_to_numpy(getattr(match, name)), golden[f"box_matching/matched_gt_{name}"]
        )
    # float32 rounding of areas, divided
    expected = golden["box_matching/matched_iou"]
    np.testing.assert_allclose(ops.convert_to_numpy(match.ious), expected, rtol=2e-6)


def test_a_bound_belongs_to_the_interval_above():
    match = matcher.match(np.array([[0.4], [0.39], [0.6]], "float32"), (0.4, 0.6))
    assert np.array(match.indicators).tolist() == [
        matcher.IGNORED,
        matcher.BACKGROUND,
        matcher.MATCHED,
    ]


def test_force_gives_each_object_a_box_and_padding_none():
    similarity = np.array(
        [
            [[0.1, 0.0, 0.0], [0.2, 0.0, 0.1], [0.0, 0.0, 0.0]],
            [[0.0, 0.0, 0.0], [0.3, 0.2, 0.0], [0.0, 0.1, 0.0]],
        ],
        "float32",
    )
    match = matcher.match(similarity, (0.5,), (-1, 1), force=True)
    # In both images two objects like box 1 best: the first one gets it.
    assert np.array(match.indicators).tolist() == [[-1, 1, -1], [-1, 1, -1]]
    assert np.array(match.indices)[:, 1].tolist() == [0, 0]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("m", [1, 16, 40])
def test_matching_in_parts_is_matching(compiled, force, m):
    random = np.random.RandomState(0)

    def draw(*shape):
        # Few values, so that there are ties.
        low = random.randint(0, 5, (*shape, 2))
        return np.concatenate([low, low + random.randint(1, 5, (*shape, 2))], -1).astype("float32")

    boxes, objects = draw(50), draw(3, m)
    objects[0, m // 2 :] = -1
    objects[1] = -1

    def run(boxes, objects):
        expected = matcher.match(iou.iou(boxes, objects), (0.4, 0.6), force=force)
        return expected, matcher.match_overlaps(boxes, objects, (0.4, 0.6), force=force)

    expected, actual = compiled(run)(boxes, objects)
    np.testing.assert_array_equal(actual.indices, expected.indices)
    np.testing.assert_array_equal(actual.indicators, expected.indicators)


def test_thresholds_must_rise():
    with pytest.raises(ValueError, match="rising"):
        matcher.match(np.zeros((1, 1)), (0.5, 0.4))
    with pytest.raises(ValueError, match="one more indicator"):
        matcher.match(np.zeros((1, 1)), (0.5,))
