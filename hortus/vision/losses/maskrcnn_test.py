import keras
import numpy as np
import pytest
from keras import ops

from hortus import engine
from hortus.testing import reference_dir
from hortus.vision.losses import maskrcnn as losses

WEIGHTS = [1.0, 2.0, 0.5, 3.0]


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/losses_detection.npz")


def levels(golden, name):
    return {level: golden[f"rpn/{name}/{level}"] for level in "23"}


def equal(found, expected):
    # Sums of up to a few thousand float32 numbers.
    np.testing.assert_allclose(float(found), float(expected), rtol=2e-6)


def test_rpn_equals_reference(golden):
    score_loss = losses.RpnScoreLoss(16)
    score = score_loss(levels(golden, "score_outputs"), levels(golden, "score_targets"))
    equal(score, golden["RpnScoreLoss_batch16"])
    for delta, key in ((1 / 9, "0.1111"), (1.0, "1.0000")):
        box = losses.RpnBoxLoss(delta)(levels(golden, "box_outputs"), levels(golden, "box_targets"))
        equal(box, golden[f"RpnBoxLoss_delta{key}"])


@pytest.mark.parametrize(
    ("key", "settings", "weights"),
    [
        ("softmax", {}, None),
        ("bce", {"use_binary_cross_entropy": True}, None),
        ("softmax_topk0.5", {"top_k_percent": 0.5}, None),
        ("softmax_weights_1_2_.5_3", {}, WEIGHTS),
        ("bce_weights_1_2_.5_3", {"use_binary_cross_entropy": True}, WEIGHTS),
    ],
)
def test_classes_equal_reference(golden, key, settings, weights):
    loss = losses.FastrcnnClassLoss(**settings)
    found = loss(golden["frcnn/class_outputs"], golden["frcnn/class_targets"], weights)
    equal(found, golden[f"FastrcnnClassLoss/{key}"])


def test_boxes_equal_reference(golden):
    outputs, classes = golden["frcnn/box_outputs"], golden["frcnn/class_targets"]
    targets = golden["frcnn/box_targets"]
    found = losses.FastrcnnBoxLoss()(outputs, classes, targets)
    equal(found, golden["FastrcnnBoxLoss/delta1"])
    found = losses.FastrcnnBoxLoss(class_agnostic=True)(outputs[..., :4], classes, targets)
    equal(found, golden["FastrcnnBoxLoss/delta1_class_agnostic(box_outputs[...,:4])"])


@pytest.mark.parametrize(
    ("targets", "key"), [("targets", ""), ("targets_with_ignore-1", "_ignore")]
)
def test_masks_equal_reference(golden, targets, key):
    inputs = (golden["mask/outputs"], golden[f"mask/{targets}"], golden["mask/class_targets"])
    # A target of -1 is no more than a number to the reference too.
    equal(losses.MaskrcnnLoss()(*inputs), golden[f"MaskrcnnLoss{key}"])


def test_regions_that_do_not_count_have_no_gradient(golden):
    targets = golden["frcnn/class_targets"]
    counts = np.arange(targets.size).reshape(targets.shape) % 3 > 0
    logits = keras.Variable(golden["frcnn/class_outputs"])
    loss = losses.FastrcnnClassLoss()

    def run():
        return loss(logits * 1.0, targets, counts=counts), None

    (value, _), (gradient,) = engine.value_and_grad(run, [logits])
    expected = loss(golden["frcnn/class_outputs"][counts][None], targets[counts][None])
    np.testing.assert_allclose(float(value), float(expected), rtol=1e-6)
    changed = np.abs(ops.convert_to_numpy(gradient)).max(-1) > 0
    np.testing.assert_array_equal(changed, counts)


def test_nothing_to_find_is_no_loss():
    zeros = np.zeros((2, 3), "int32")
    boxes = losses.FastrcnnBoxLoss()(np.ones((2, 3, 8), "float32"), zeros, np.zeros((2, 3, 4)))
    masks = losses.MaskrcnnLoss()(np.ones((2, 3, 4, 4), "float32"), np.zeros((2, 3, 4, 4)), zeros)
    none = np.zeros((2, 3), bool)
    classes = losses.FastrcnnClassLoss()(np.ones((2, 3, 2), "float32"), zeros, counts=none)
    assert float(boxes) == float(masks) == float(classes) == 0.0


def test_mean_over_replicas_is_the_loss_of_the_batch(golden):
    """Each of two replicas divides by the mean of what both counted."""
    classes, targets = golden["frcnn/class_targets"], golden["frcnn/box_targets"]
    outputs = golden["frcnn/box_outputs"]
    loss = losses.FastrcnnBoxLoss()
    whole = loss(outputs, classes, targets)
    share = 4.0 * (classes > 0).sum() / 2
    parts = [
        loss(outputs[i : i + 1], classes[i : i + 1], targets[i : i + 1], count=lambda _: share)
        for i in range(2)
    ]
    # 0.01 more in the denominators, of 68 and of 34
    np.testing.assert_allclose(np.mean([float(x) for x in parts]), float(whole), rtol=2e-4)


def test_half_precision_is_finite():
    logits = ops.cast(np.array([[[30000.0, -30000.0, 5.0]]]), "float16")
    loss = losses.FastrcnnClassLoss()(logits, np.array([[1]]))
    np.testing.assert_allclose(float(loss), 60000.0, rtol=1e-3)
