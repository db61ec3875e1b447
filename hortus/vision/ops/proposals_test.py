import numpy as np
import pytest
from keras import ops

from hortus.engine import kernels
from hortus.testing import reference_dir
from hortus.vision.ops import proposals
from hortus.vision.ops.anchors import AnchorGenerator

ANCHORS = AnchorGenerator(2, 6, 1, (0.5, 1.0, 2.0), 8.0)
KERNELS = [None, kernels.non_max_suppression]


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/roi.npz")


@pytest.fixture(scope="module")
def raw(golden):
    return tuple(
        {str(level): golden[f"rpn/{name}/level{level}"] for level in range(2, 7)}
        for name in ("raw_boxes", "raw_scores")
    )


def by_score(boxes, scores):
    """Rows sorted by score, and boxes of the same score by their places."""
    boxes, scores = ops.convert_to_numpy(boxes), ops.convert_to_numpy(scores)
    rows = np.concatenate([scores[..., None], boxes], axis=-1)
    keys = np.concatenate([np.round(scores, 6)[..., None], np.round(boxes, 1)], axis=-1)
    return np.stack([each[np.lexsort(key.T[::-1])] for each, key in zip(rows, keys, strict=True)])


@pytest.mark.parametrize("kernel", KERNELS, ids=["operations", "kernel"])
@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("topk200_np50_nms0.7/trainingTrue", {"num_proposals": 50, "pre_nms_top_k": 200}),
        ("topk200_np50_nms0.7/trainingFalse", {"num_proposals": 30, "pre_nms_top_k": 100}),
        (
            "minsize16_score0.3/trainingTrue",
            {"num_proposals": 50, "pre_nms_top_k": 200, "min_size": 16.0, "score_threshold": 0.3},
        ),
    ],
)
def test_equals_reference(compiled, golden, raw, key, settings, kernel):
    anchors = ANCHORS((256, 256))

    def run(boxes, scores, size):
        found = proposals.propose(boxes, scores, anchors, size, kernel=kernel, **settings)
        return found.boxes, found.scores

    found = by_score(*compiled(run)(*raw, golden["rpn/image_shape"]))
    prefix = f"MultilevelROIGenerator/{key}"
    expected = by_score(golden[f"{prefix}/rois"], golden[f"{prefix}/scores"])
    # Logits were rounded to float16, so that many anchors have the same score: sets are compared,
    # but for the last score, of which some more anchors may have it than there is room for.
    np.testing.assert_allclose(found[..., 0], expected[..., 0], atol=1e-6)
    for ours, theirs in zip(found, expected, strict=True):
        clear = theirs[:, 0] > theirs[0, 0]
        assert clear.sum() > 20
        np.testing.assert_allclose(ours[clear], theirs[clear], atol=1e-4)  # up to 256 pixels


def test_rows_that_fill_up_are_zero():
    anchors = AnchorGenerator(3, 4, 1, (1.0,), 2.0)
    levels = anchors((32, 32))
    scores = {name: np.full((2, *x.shape[:2], 1), 2.0, "float32") for name, x in levels.items()}
    codes = {name: np.zeros((2, *x.shape), "float32") for name, x in levels.items()}
    found = proposals.propose(codes, scores, levels, (32, 32), num_proposals=50, iou_threshold=0.1)
    boxes, scores = ops.convert_to_numpy(found.boxes), ops.convert_to_numpy(found.scores)
    assert boxes.shape == (2, 32, 4)  # of two levels, as if both had 16 anchors
    kept = scores > 0
    assert 2 < kept[0].sum() < 20 and not boxes[~kept].any() and (boxes[kept][:, 2:] > 0).all()


def test_images_may_have_their_own_anchors(raw):
    anchors = ANCHORS((256, 256))
    settings = {"num_proposals": 20, "pre_nms_top_k": 50}
    shared = proposals.propose(*raw, anchors, (256, 256), **settings)
    own = {name: np.stack([x, x]) for name, x in anchors.items()}
    found = proposals.propose(*raw, own, (256, 256), **settings)
    np.testing.assert_allclose(
        ops.convert_to_numpy(found.boxes), ops.convert_to_numpy(shared.boxes), atol=1e-4
    )


def test_open_sizes_on_tensorflow(raw):
    import tensorflow as tf

    def run(boxes, scores, size):
        anchors = ANCHORS((size[0], size[1]))
        found = proposals.propose(boxes, scores, anchors, size, num_proposals=40, pre_nms_top_k=100)
        return found.boxes

    levels = {str(level): tf.TensorSpec([None, None, None, 12]) for level in range(2, 7)}
    logits = {level: tf.TensorSpec([None, None, None, 3]) for level in levels}
    function = tf.function(
        run, input_signature=[levels, logits, tf.TensorSpec([2], tf.int32)], autograph=False
    )
    open_ = function(*raw, np.array([256, 256], "int32"))
    settings = {"num_proposals": 40, "pre_nms_top_k": 100}
    known = proposals.propose(*raw, ANCHORS((256, 256)), (256, 256), **settings)
    # float32 positions, computed by TensorFlow and by NumPy
    np.testing.assert_allclose(open_.numpy(), ops.convert_to_numpy(known.boxes), atol=1e-3)


def test_half_precision():
    anchors = AnchorGenerator(3, 3, 1, (1.0,), 4.0)
    levels = anchors((1024, 1024))
    scores = {"3": np.zeros((1, 128, 128, 1), "float16")}
    scores["3"][0, 100, 100] = 9.0
    codes = {"3": np.zeros((1, 128, 128, 4), "float16")}
    found = proposals.propose(codes, scores, levels, (1024, 1024), num_proposals=3)
    # In float16 the middle of this anchor, at 804, would be rounded by half a pixel.
    np.testing.assert_array_equal(ops.convert_to_numpy(found.boxes)[0, 0], [788, 788, 820, 820])
