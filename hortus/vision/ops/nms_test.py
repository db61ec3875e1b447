import numpy as np
import pytest
from keras import ops

from hortus.engine import kernels
from hortus.testing import reference_dir
from hortus.vision.ops import iou, nms


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/nms_detection.npz")


@pytest.fixture
def suppress(compiled):
    """`nms.suppress`, compiled for the settings it is called with."""

    def run(method, boxes, scores, attributes=None, **settings):
        def function(boxes, scores, attributes):
            return nms.suppress(method, boxes, scores, attributes=attributes, **settings)

        return compiled(function)(boxes, scores, attributes or {})

    return run


def draw(batch=2, n=30, q=1, classes=3, seed=0):
    random = np.random.RandomState(seed)
    low = random.uniform(0, 60, (batch, n, q, 2))
    boxes = np.concatenate([low, low + random.uniform(5, 40, low.shape)], -1).astype("float32")
    return boxes, random.uniform(0, 1, (batch, n, classes)).astype("float32")


def overlap(a, b):
    height, width = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    common = max(height, 0) * max(width, 0)
    return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


def by_hand(boxes, scores, iou_threshold, score_threshold, limit, sigma=None):
    """One image, class by class, then the best of all: (score, class, index)."""
    found = []
    for column in range(scores.shape[1]):
        own = boxes[:, min(column, boxes.shape[1] - 1)]
        left = {i: float(s) for i, s in enumerate(scores[:, column]) if s > score_threshold}
        while left:
            best = max(left, key=left.get)
            found.append((left.pop(best), column, best))
            for i in list(left):
                common = overlap(own[best], own[i])
                if sigma:
                    left[i] *= np.exp(-(common**2) / (2 * sigma))
                if (common > iou_threshold and not sigma) or left[i] <= score_threshold:
                    del left[i]
    return sorted(found, reverse=True)[:limit]


def check(found, boxes, scores, *settings, **options):
    for image in range(len(boxes)):
        expected = by_hand(boxes[image], scores[image], *settings, **options)
        count = len(expected)
        assert int(found.count[image]) == count
        values = [ops.convert_to_numpy(x)[image] for x in found[:3]]
        for x in values:
            assert not x[count:].any()
        q = boxes.shape[2]
        boxes_by_hand = [boxes[image, i, min(c, q - 1)] for _, c, i in expected]
        np.testing.assert_array_equal(values[0][:count], np.reshape(boxes_by_hand, (-1, 4)))
        np.testing.assert_array_equal(values[1][:count], [c for _, c, _ in expected])
        # products of float32 factors with soft NMS
        np.testing.assert_allclose(values[2][:count], [s for s, _, _ in expected], rtol=1e-5)


@pytest.mark.parametrize("kernel", [None, kernels.non_max_suppression])
@pytest.mark.parametrize(("q", "limit", "least"), [(1, 8, 0.0), (3, 8, 0.2), (1, 40, 0.6)])
def test_per_class(suppress, q, limit, least, kernel):
    boxes, scores = draw(q=q)
    scores[1, 1:] = 0.0
    found = suppress(
        "per_class",
        boxes,
        scores,
        iou_threshold=0.4,
        score_threshold=least,
        max_detections=limit,
        kernel=kernel,
    )
    check(found, boxes, scores, 0.4, least, limit)


@pytest.mark.parametrize("limit", [8, 50])
@pytest.mark.parametrize("method", ["soft", "v1"])
def test_soft(suppress, method, limit):
    boxes, scores = draw()
    found = suppress(
        method,
        boxes,
        scores,
        sigma=0.2,
        iou_threshold=0.5,
        score_threshold=0.3,
        max_detections=limit,
    )
    check(found, boxes, scores, 2.0, 0.3, limit, sigma=0.2)


def test_class_agnostic(suppress):
    boxes, scores = draw()
    best = scores.max(-1, keepdims=True)
    attributes = {"row": np.arange(30.0)[None, :, None].repeat(2, 0)}
    settings = {"iou_threshold": 0.4, "max_detections": 40, "attributes": attributes}
    found = suppress("class_agnostic", boxes, scores, **settings)
    check(found._replace(classes=np.zeros((2, 40))), boxes, best, 0.4, 0.0, 40)
    rows = ops.convert_to_numpy(found.attributes["row"])[..., 0].astype(int)
    for image, count in enumerate(np.array(found.count)):
        classes = ops.convert_to_numpy(found.classes)[image, :count]
        np.testing.assert_array_equal(classes, scores[image, rows[image, :count]].argmax(-1))
    assert list(found.attributes) == ["row"]


def test_only_the_best_of_a_class_take_part(suppress):
    boxes, scores = draw()
    settings = {"iou_threshold": 0.4, "max_detections": 40, "top_k": 5}
    found = suppress("per_class", boxes, scores, **settings)
    limit = np.sort(scores, axis=1)[:, -5:-4]
    check(found, boxes, np.where(scores >= limit, scores, 0), 0.4, 0.0, 40)


@pytest.mark.parametrize("kernel", [None, kernels.non_max_suppression])
@pytest.mark.parametrize("q", [1, 3])
def test_attributes_belong_to_their_boxes(suppress, kernel, q):
    boxes, scores = draw(q=q)
    boxes[:, 3:6], scores[:, 3:6] = boxes[:, 3:4], scores[:, 3:4]  # the first of equals counts
    rows = np.arange(30, dtype="float32")[None, :, None].repeat(2, 0)
    found = suppress(
        "per_class",
        boxes,
        scores,
        iou_threshold=0.4,
        max_detections=70,
        attributes={"row": rows},
        kernel=kernel,
    )
    for image, count in enumerate(np.array(found.count)):
        expected = by_hand(boxes[image], scores[image], 0.4, 0.0, 70)
        expected = {(c, s): i for s, c, i in expected}
        actual = ops.convert_to_numpy(found.attributes["row"])[image, :count, 0]
        classes, values = (ops.convert_to_numpy(x)[image, :count] for x in found[1:3])
        keys = zip(classes.tolist(), values.tolist(), strict=True)
        assert actual.tolist() == [expected[key] for key in keys]


def test_one_class_equals_reference(golden, suppress):
    boxes = golden["sorted_nms/boxes"][None, :, None]
    scores = golden["sorted_nms/scores"][None, :, None]
    found = suppress("per_class", boxes, scores, iou_threshold=0.4, max_detections=10)
    for name in ("scores", "boxes"):
        np.testing.assert_array_equal(
            ops.convert_to_numpy(getattr(found, name)),
            golden[f"sorted_nms/out_{name}_iou0.4_max10"],
        )
    chosen = golden["tf.image.non_max_suppression/indices_iou0.4_max10"]
    np.testing.assert_array_equal(found.boxes[0], boxes[0, chosen, 0])


def test_soft_equals_reference(golden, suppress):
    boxes = golden["sorted_nms/boxes"][None, :, None]
    scores = golden["sorted_nms/scores"][None, :, None]
    found = suppress("soft", boxes, scores, sigma=0.5, iou_threshold=1.0, max_detections=10)
    indices = golden["soft_nms_sigma0.5/indices"]
    np.testing.assert_array_equal(found.boxes[0], boxes[0, indices, 0])
    # float32 rounding of an exponential
    expected = golden["soft_nms_sigma0.5/scores"]
    np.testing.assert_allclose(ops.convert_to_numpy(found.scores)[0], expected, rtol=1e-6)


def test_what_cannot_be():
    boxes, scores = draw(q=3)
    settings = {"iou_threshold": 0.5, "max_detections": 5}
    with pytest.raises(ValueError, match="there are per_class, class_agnostic, soft, v1"):
        nms.suppress("v9", boxes, scores, **settings)
    with pytest.raises(ValueError, match="one box for all classes, got 3"):
        nms.suppress("class_agnostic", boxes, scores, **settings)
    with pytest.raises(ValueError, match="leave out sigma"):
        nms.suppress("class_agnostic", boxes, scores, sigma=0.5, **settings)
    with pytest.raises(ValueError, match="sigma must be > 0"):
        nms.suppress("soft", boxes, scores, **settings)


def test_survivors_are_those_of_suppression_one_by_one(compiled):
    random = np.random.RandomState(3)
    centres, sides = random.uniform(0, 60, (2, 120, 2)), random.uniform(5, 30, (2, 120, 2))
    boxes = np.concatenate([centres - sides / 2, centres + sides / 2], axis=-1).astype("float32")
    found = ops.convert_to_numpy(compiled(lambda x: nms.survivors(x, 0.4))(boxes))
    for image in range(2):
        kept = []
        overlaps = ops.convert_to_numpy(iou.iou(boxes[image], boxes[image]))
        for number in range(120):
            if all(overlaps[number, other] <= 0.4 for other in kept):
                kept.append(number)
        assert np.flatnonzero(found[image]).tolist() == kept
    assert 10 < found.sum() < 200
