"""The losses of segmentation, against the reference and by hand."""

import keras
import numpy as np
import pytest
from keras import ops

from hortus import engine
from hortus.testing import reference_dir
from hortus.vision.losses.segmentation import (
    MaskScoringLoss,
    SegmentationLoss,
    actual_mask_scores,
)

WEIGHTS = [1, 2, 0.5, 3]
CASES = {
    "plain_gtdim": {},
    "plain_no_gtdim": {"use_groundtruth_dimension": False},
    "ls0.1": {"label_smoothing": 0.1},
    "cw_1_2_.5_3": {"class_weights": WEIGHTS},
    "topk0.25": {"top_k_percent_pixels": 0.25},
    "topk0.25_ls0.1_cw": {
        "top_k_percent_pixels": 0.25,
        "label_smoothing": 0.1,
        "class_weights": WEIGHTS,
    },
    "bce": {"use_binary_cross_entropy": True},
    "bce_topk0.25": {"use_binary_cross_entropy": True, "top_k_percent_pixels": 0.25},
    "bce_ls0.1_cw": {
        "use_binary_cross_entropy": True,
        "label_smoothing": 0.1,
        "class_weights": WEIGHTS,
    },
}


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden" / "losses_segmentation.npz")


def as_numpy(value):
    return np.asarray(ops.convert_to_numpy(value))


def value_and_grad(loss, logits, labels):
    variable, labels = keras.Variable(logits), ops.convert_to_tensor(labels)
    value, (gradient,) = engine.value_and_grad(lambda: loss(variable.value, labels), [variable])
    return as_numpy(value), as_numpy(gradient)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_equal_reference(golden, name):
    loss = SegmentationLoss(**CASES[name])
    value, gradient = value_and_grad(loss, golden["logits"], golden["labels16"])
    # Both sides sum a few hundred float32 in different orders.
    np.testing.assert_allclose(value, golden[f"SegmentationLoss/{name}/loss"], rtol=2e-6)
    expected = golden[f"SegmentationLoss/{name}/grad"]
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-7)


def test_several_layers_and_mattes_equal_reference(golden):
    layers = SegmentationLoss(use_binary_cross_entropy=True)
    value = as_numpy(layers(golden["logits"], golden["labels8_2layers"]))
    np.testing.assert_allclose(value, golden["SegmentationLoss/bce_multilayer/loss"], rtol=2e-6)
    matte = SegmentationLoss(gt_is_matting_map=True)
    value = as_numpy(matte(golden["logits"][..., :2], golden["matting"]))
    expected = golden["SegmentationLoss/matting/loss(logits[...,:2])"]
    np.testing.assert_allclose(value, expected, rtol=2e-6)


def test_mask_scores_equal_reference(golden):
    logits, labels = golden["logits"], golden["labels16"]
    scores = as_numpy(actual_mask_scores(logits, labels))
    np.testing.assert_allclose(scores, golden["get_actual_mask_scores"], rtol=1e-6)
    loss = as_numpy(MaskScoringLoss()(golden["pred_mask_scores"], logits, labels))
    np.testing.assert_allclose(loss, golden["MaskScoringLoss"], rtol=1e-6)


def test_nothing_but_ignored_pixels_gives_zero_and_no_gradient():
    logits = np.ones((1, 2, 2, 3), "float32")
    for share in (1.0, 0.5):
        loss = SegmentationLoss(top_k_percent_pixels=share)
        value, gradient = value_and_grad(loss, logits, np.full((1, 2, 2, 1), 255))
        assert value == 0 and not gradient.any()


def test_several_layers_give_a_pixel_several_classes():
    logits = np.zeros((1, 1, 2, 3), "float32")
    labels = np.array([[[[0, 2], [1, 255]]]])
    _, gradient = value_and_grad(SegmentationLoss(use_binary_cross_entropy=True), logits, labels)
    assert (np.sign(gradient[0, 0]) == [[-1, 1, -1], [1, -1, 1]]).all()


def test_sizes_known_late_make_no_difference_on_tensorflow(golden):
    from hortus.testing.open_sizes import call_with_open_sizes

    for options in (CASES["topk0.25"], CASES["plain_no_gtdim"]):
        loss = SegmentationLoss(**options)
        pair = (golden["logits"], golden["labels16"])
        late = call_with_open_sizes(lambda inputs, loss=loss: loss(*inputs), pair)
        # Resizing is a product of matrices then.
        np.testing.assert_allclose(as_numpy(late), as_numpy(loss(*pair)), rtol=1e-5)
