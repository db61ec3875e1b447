"""Panoptic quality, in Python and as a Keras metric, against the reference and by hand."""

import keras
import numpy as np
import pytest

from hortus.testing import reference_dir
from hortus.vision.evaluation.panoptic import PanopticQuality, PanopticQualityEvaluator
from hortus.vision.evaluation.panoptic_metric import PanopticQualityMetric

IS_THING = [False, False, False, True, True]
SETTINGS = {
    "num_categories": 5,
    "ignored_label": 0,
    "max_instances_per_category": 256,
    "offset": 65536,
}


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden" / "panoptic.npz")


def pair(golden):
    return tuple(
        {"category_mask": golden[f"{who}_category"], "instance_mask": golden[f"{who}_instance"]}
        for who in ("gt", "pred")
    )


def masks(categories, instances):
    return {"category_mask": np.array(categories), "instance_mask": np.array(instances)}


def test_python_metric_equals_reference(golden):
    true, predicted = pair(golden)
    quality = PanopticQuality(**SETTINGS)
    for index in range(2):
        quality.compare_and_accumulate(
            {key: mask[index] for key, mask in true.items()},
            {key: mask[index] for key, mask in predicted.items()},
        )
    found = quality.result(IS_THING)
    for name in ("iou", "tp", "fp", "fn"):
        found[f"{name}_per_class"] = getattr(quality, f"{name}_per_class")
    expected = [key for key in golden.files if key.startswith("PanopticQuality/")]
    assert len(expected) == 19
    for key in expected:
        # float64 throughout
        np.testing.assert_allclose(found[key.split("/")[1]], golden[key], rtol=1e-9, err_msg=key)


def test_evaluator_equals_reference(golden):
    evaluator = PanopticQualityEvaluator(**SETTINGS, is_thing=IS_THING)
    evaluator.update_state(*pair(golden))
    found = evaluator.result()
    for key in golden.files:
        if key.startswith("PanopticQualityEvaluator/"):
            np.testing.assert_allclose(found[key.split("/")[1]], golden[key], rtol=1e-9)
    evaluator.reset_states()
    assert evaluator.result()["All_num_categories"] == 0


def test_keras_metric_equals_reference(golden):
    metric = PanopticQualityMetric(5, IS_THING, max_num_instances=256, ignored_label=0)
    metric.update_state(*pair(golden))
    found = metric.result()
    for key in golden.files:
        if key.startswith("PanopticQualityV2/"):
            value = keras.ops.convert_to_numpy(found[key.split("/")[1]])
            # float32 quotients of counts
            np.testing.assert_allclose(value, golden[key], rtol=1e-6, err_msg=key)


def test_both_agree_on_random_masks():
    random = np.random.RandomState(0)
    metric = PanopticQualityMetric(4, max_num_instances=8)
    evaluator = PanopticQualityEvaluator(4, 255, 8, 4096)
    for _ in range(2):
        # Blocks, so that some segments match, some of them in the void.
        blocks = random.randint(0, 5, (2, 2, 3, 3)).repeat(4, axis=2).repeat(4, axis=3)
        categories = np.where(blocks == 4, 255, blocks)
        instances = random.randint(0, 3, (2, 2, 3, 3)).repeat(4, axis=2).repeat(4, axis=3)
        noise = random.rand(2, 12, 12) < 0.1
        categories[1] = np.where(noise, categories[1], categories[0])
        instances[1] = np.where(noise, instances[1], instances[0])
        true, predicted = (masks(categories[i], instances[i]) for i in range(2))
        metric.update_state(true, predicted)
        evaluator.update_state(true, predicted)
    expected = evaluator.result()
    assert expected["All_pq"] > 0.1
    for key, value in metric.result().items():
        if key in expected:
            np.testing.assert_allclose(keras.ops.convert_to_numpy(value), expected[key], rtol=1e-5)


def test_the_void_costs_nothing():
    true = masks([[[1, 1, 255, 255]]], [[[0, 0, 0, 0]]])
    evaluator = PanopticQualityEvaluator(3, 255, 4, 64)
    # It reaches into the void, and beside it lies a segment mostly in the void.
    evaluator.update_state(true, masks([[[1, 1, 1, 2]]], [[[0, 0, 0, 0]]]))
    assert evaluator.result()["All_pq"] == 1
    assert evaluator.result()["All_num_categories"] == 1


def test_predictions_are_rescaled_to_the_original():
    truth = np.zeros((1, 6, 6), int)
    truth[0, :4, 2:4] = 1
    truth[0, 4:], truth[0, :, 4:] = 1, 1  # padding
    predicted = np.array([[[0, 1, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]])
    info = np.array([[[4, 4], [4, 4], [0.5, 0.5], [0, 0]]], float)
    evaluator = PanopticQualityEvaluator(2, 255, 2, 16, rescale_predictions=True)
    evaluator.update_state(
        {**masks(truth, np.zeros_like(truth)), "image_info": info},
        masks(predicted, np.zeros_like(predicted)),
    )
    np.testing.assert_array_equal(evaluator.result()["pq_per_class"], [1, 1])


def test_too_many_are_told():
    with pytest.raises(ValueError, match="offset must be at least"):
        PanopticQuality(5, 0, 256, 100)
    with pytest.raises(ValueError, match="lower max_num_instances"):
        PanopticQualityMetric(200, max_num_instances=255)
    mask = masks([[1]], [[9]])
    with pytest.raises(ValueError, match="instance 9 is not below"):
        PanopticQuality(2, 255, 4, 64).compare_and_accumulate(mask, mask)
