"""The metrics of segmentation, against the reference and by hand."""

import pathlib

import keras
import numpy as np
import pytest

from hortus.testing import reference_dir, run_under_engine
from hortus.vision.evaluation import iou, segmentation


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden" / "metrics_segmentation.npz")


@pytest.mark.parametrize("rescale", [False, True])
@pytest.mark.parametrize("name", ["MeanIoU", "PerClassIoU", "PerClassIoUV2", "MeanIoUV2"])
def test_equals_reference(golden, name, rescale):
    metric = getattr(segmentation, name)(4, rescale_predictions=rescale)
    labels = {key: golden[key] for key in ("masks", "valid_masks", "image_info")}
    metric.update_state(labels, {"logits": golden["logits"]})
    # Counts are exact; the division is in float32.
    np.testing.assert_allclose(
        np.asarray(metric.result()), golden[f"{name}/rescale{rescale}"], rtol=1e-6
    )


def test_per_class_iou_of_class_numbers_equals_reference(golden):
    metric = iou.PerClassIoU(4)
    for true, predicted in zip(golden["iou/true"], golden["iou/pred"], strict=True):
        metric.update_state(true, predicted)
    np.testing.assert_allclose(np.asarray(metric.result()), golden["iou.PerClassIoU"], rtol=1e-6)
    metric.reset_state()
    assert not np.asarray(metric.result()).any()


def test_counts_of_pairs():
    labels = np.array([[0, 1, 1, 2], [2, 2, 255, 0]])
    predictions = np.array([[0, 1, 2, 2], [2, 0, 1, 1]])
    is_valid = np.array([[1, 1, 1, 1], [1, 1, 1, 0]], bool)
    counts = np.asarray(iou.count_pairs(labels, predictions, is_valid, 3))
    np.testing.assert_array_equal(counts[0], [[1, 0, 0], [0, 1, 1], [0, 0, 1]])
    np.testing.assert_array_equal(counts[1], [[0, 0, 0], [0, 0, 0], [1, 0, 1]])
    np.testing.assert_allclose(iou.iou_of_counts(counts.sum(axis=0)), [0.5, 0.5, 0.5])


def test_a_class_that_was_never_met_has_no_iou():
    counts = np.array([[3, 1, 0], [0, 4, 0], [0, 0, 0]])
    np.testing.assert_allclose(iou.iou_of_counts(counts), [0.75, 0.8, np.nan])
    metric = segmentation.MeanIoU(3)
    assert float(metric.result()) == 0
    metric.counts.assign(counts.astype("float32"))
    np.testing.assert_allclose(float(metric.result()), 0.775, rtol=1e-6)


def test_rescaled_predictions_fit_the_original():
    # An original of 8 x 4 that was shrunk to 4 x 2 and padded to 4 x 4; logits at half of that.
    truth = np.zeros((1, 10, 10, 1), "int32")
    truth[0, 4:8, :4] = 1
    logits = np.zeros((1, 4, 4, 2), "float32")
    logits[0, 2:, :2, 1], logits[0, :2, :2, 0] = 9, 9
    logits[0, :, 2:, 1] = 99  # in the padding, where it must not count
    labels = {
        "masks": truth,
        "valid_masks": np.ones_like(truth, bool),
        "image_info": np.array([[[8, 4], [4, 4], [0.5, 0.5], [0, 0]]], "float32"),
    }
    metric = segmentation.PerClassIoU(2, rescale_predictions=True)
    metric.update_state(labels, logits)
    np.testing.assert_array_equal(np.asarray(metric.result()), [1, 1])


def test_metrics_have_their_config():
    metric = segmentation.MeanIoU(3, rescale_predictions=True, name="other")
    again = segmentation.MeanIoU.from_config(metric.get_config())
    assert (again.num_classes, again.rescale_predictions, again.name) == (3, True, "other")
    assert isinstance(metric, keras.metrics.Metric)


def test_mask_scores_mse():
    metric = segmentation.MaskScoresMSE()
    metric.update_state(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]]))
    assert float(metric.result()) == 0.25


def test_on_jax():
    # The tests of panoptic quality too, as starting the process takes longer than most tests.
    folder = pathlib.Path(__file__).parent
    run_under_engine("jax", folder, select="segmentation_test or panoptic_test")
