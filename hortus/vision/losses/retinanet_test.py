import keras
import numpy as np
import pytest
from keras import ops

from hortus import engine
from hortus.testing import reference_dir
from hortus.vision.losses.focal import FocalLoss
from hortus.vision.losses.retinanet import RetinaNetLoss, num_matched
from hortus.vision.ops.anchor_labeler import AnchorLabels

SETTINGS = [(0.25, 1.5), (0.25, 2.0), (0.5, 0.0), (0.25, 0.5)]


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/losses_detection.npz")


def value_and_grad(function, value):
    variable = keras.Variable(value)
    (loss, _), (grad,) = engine.value_and_grad(lambda: (function(variable * 1.0), None), [variable])
    return ops.convert_to_numpy(loss), ops.convert_to_numpy(grad)


@pytest.mark.parametrize(("alpha", "gamma"), SETTINGS)
def test_focal_equals_reference(golden, alpha, gamma):
    targets, logits = golden["focal/targets"], golden["focal/logits"]
    key = f"focal/a{alpha}_g{gamma}"
    loss = FocalLoss(alpha, gamma, reduction="none")(targets, logits)
    # float32: a power of the reference is one exponential here
    np.testing.assert_allclose(ops.convert_to_numpy(loss), golden[f"{key}_none/loss"], rtol=2e-6)
    weights = golden["focal/sample_weight"][..., None]
    focal = FocalLoss(alpha, gamma, reduction="sum")
    loss, grad = value_and_grad(lambda x: focal(targets, x, sample_weight=weights), logits)
    np.testing.assert_allclose(loss, golden[f"{key}_sum/loss"], rtol=1e-6)
    np.testing.assert_allclose(grad, golden[f"{key}_sum/grad"], rtol=1e-5, atol=1e-6)


def test_focal_is_finite_and_exact_far_out():
    logits = ops.convert_to_tensor([[-200.0, -30.0, 30.0, 200.0]])
    losses = ops.convert_to_numpy(FocalLoss(reduction="none")(ops.zeros((1, 4)), logits))
    # 0.75 (1 - p)^1.5 (-log p), and for a far wrong logit x nearly 0.75 x
    np.testing.assert_allclose(losses[0, 2:], [22.5, 150.0], rtol=1e-6)
    np.testing.assert_allclose(losses[0, 1], 0.75 * np.exp(-30 * 2.5), rtol=1e-4)
    assert losses[0, 0] == 0


def test_focal_without_focus_is_cross_entropy():
    logits = np.random.RandomState(0).normal(size=(3, 4)).astype("float32")
    targets = np.eye(4, dtype="float32")[[0, 1, 3]]
    loss = FocalLoss(0.5, 0.0)(targets, logits)
    expected = 0.5 * ops.mean(ops.binary_crossentropy(targets, logits, from_logits=True))
    np.testing.assert_allclose(float(loss), float(expected), rtol=1e-6)


def test_focal_round_trip():
    loss = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(FocalLoss(0.3, 2.5, reduction="sum"))
    )
    assert (loss.alpha, loss.gamma, loss.reduction) == (0.3, 2.5, "sum")


def labels_of(golden, classes=None, attributes=None):
    weights = golden["focal/sample_weight"]
    if classes is None:
        targets = golden["focal/targets"]
        classes = np.where(targets.any(-1), targets.argmax(-1), -1)
    return AnchorLabels(
        classes=ops.convert_to_tensor(classes, "int32"),
        boxes=ops.convert_to_tensor(golden["box/target"]),
        attributes=attributes or {},
        class_weights=ops.convert_to_tensor(weights),
        box_weights=ops.convert_to_tensor(weights),
    )


@pytest.mark.parametrize("delta", [0.1, 1.0])
def test_parts_equal_reference(golden, delta):
    logits, codes = golden["focal/logits"], golden["box/pred"]
    labels = labels_of(golden)
    criterion = RetinaNetLoss(delta=delta)
    losses = criterion(labels, ops.convert_to_tensor(logits), codes)
    normalizer = golden["focal/sample_weight"].sum() + 1
    np.testing.assert_allclose(float(num_matched(labels)), normalizer, rtol=1e-6)
    # float32 sums in another order
    expected = golden["focal/a0.25_g1.5_sum/loss"] / normalizer
    np.testing.assert_allclose(float(losses.classes), expected, rtol=2e-6)
    key = f"huber_sum_delta{delta}"
    boxes = golden[f"{key}/loss(sample_weight=focal/sample_weight)"] / normalizer
    np.testing.assert_allclose(float(losses.boxes), boxes, rtol=2e-6)
    np.testing.assert_allclose(float(losses.total), expected + 50 * boxes, rtol=2e-6)
    _, grad = value_and_grad(
        lambda x: criterion(labels, ops.convert_to_tensor(logits), x, normalizer=1.0).boxes, codes
    )
    np.testing.assert_allclose(grad, golden[f"{key}/grad"], rtol=1e-5, atol=1e-7)


def test_class_numbers_equal_reference(golden):
    labels = labels_of(golden, classes=golden["retinanet_losses/labels"])
    labels = labels._replace(class_weights=ops.ones((2, 9)))
    loss = RetinaNetLoss()(
        labels, ops.convert_to_tensor(golden["focal/logits"]), golden["box/pred"], normalizer=1.0
    )
    expected = golden["retinanet_losses.FocalLoss_sum/a0.25_g1.5"]
    np.testing.assert_allclose(float(loss.classes), expected, rtol=2e-6)


def test_attributes(golden):
    random = np.random.RandomState(1)
    kinds = random.randint(0, 3, size=(2, 9, 1))
    colours = random.normal(size=(2, 9, 2)).astype("float32")
    labels = labels_of(golden, attributes={"kind": kinds, "colour": colours})
    outputs = {
        "kind": ops.convert_to_tensor(random.normal(size=(2, 9, 3)), "float32"),
        "colour": ops.convert_to_tensor(3 * random.normal(size=(2, 9, 2)), "float32"),
    }
    criterion = RetinaNetLoss(attribute_types={"kind": "classification", "colour": "regression"})
    logits, codes = ops.convert_to_tensor(golden["focal/logits"]), golden["box/pred"]
    losses = criterion(labels, logits, codes, outputs)
    weights = golden["focal/sample_weight"]
    error = np.abs(colours - ops.convert_to_numpy(outputs["colour"]))
    huber = np.where(error < 1, error**2 / 2, error - 0.5).mean(-1)
    expected = (huber * weights).sum() / (weights.sum() + 1)
    np.testing.assert_allclose(float(losses.attributes["colour"]), expected, rtol=1e-5)
    focal = FocalLoss(reduction="none")(np.eye(3, dtype="float32")[kinds[..., 0]], outputs["kind"])
    expected = (ops.convert_to_numpy(focal).sum(-1) * weights).sum() / (weights.sum() + 1)
    np.testing.assert_allclose(float(losses.attributes["kind"]), expected, rtol=1e-5)
    parts = float(losses.classes) + 50 * float(losses.boxes)
    np.testing.assert_allclose(
        float(losses.total), parts + sum(map(float, losses.attributes.values())), rtol=1e-6
    )


def test_images_without_objects(golden):
    labels = labels_of(golden, classes=np.full((2, 9), -1))
    labels = labels._replace(box_weights=ops.zeros((2, 9)))
    logits = ops.convert_to_tensor(golden["focal/logits"])
    losses = RetinaNetLoss()(labels, logits, golden["box/pred"])
    assert float(losses.boxes) == 0 and np.isfinite(float(losses.total))
    assert float(losses.classes) > 0  # what was found there counts as wrong
