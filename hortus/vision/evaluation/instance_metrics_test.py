import keras
import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir, run_under_engine
from hortus.vision.evaluation.coco import COCOEvaluator
from hortus.vision.evaluation.coco_test import SIZE, random_set
from hortus.vision.evaluation.instance_metrics import (
    COCOAveragePrecision,
    InstanceMetrics,
    VOC2010AveragePrecision,
)

ALGORITHMS = {"ap_coco": COCOAveragePrecision(), "ap_voc10": VOC2010AveragePrecision()}


def compiled(function):
    """As the step of an engine would run it."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function)


def test_the_numbers_of_the_reference():
    golden = np.load(reference_dir() / "golden" / "instance_metrics.npz")
    metric = InstanceMetrics(
        num_classes=4,
        iou_thresholds=(0.5, 0.75),
        confidence_thresholds=(0.3, 0.5),
        average_precision_algorithms=ALGORITHMS,
    )
    # Image by image: counts add up.
    state = [variable.value for variable in metric.variables]
    update = compiled(metric.stateless_update_state)
    for image in (slice(0, 1), slice(1, 2), slice(2, 3)):
        truth = {"boxes": golden["gt_boxes"][image], "classes": golden["gt_classes"][image]}
        state = update(
            state,
            truth,
            {
                "detection_boxes": golden["det_boxes"][image],
                "detection_classes": golden["det_classes"][image],
                "detection_scores": golden["det_scores"][image],
            },
        )
    results = compiled(metric.stateless_result)(state)
    assert metric.get_average_precision_metrics_keys() == list(ALGORITHMS)
    for key in ("ap_coco", "ap_voc10", "precisions", "recalls", "valid_classes"):
        expected = golden[f"InstanceMetrics/{key}"]
        # Sums of at most 101 float32 numbers below 1.
        np.testing.assert_allclose(
            np.asarray(results[key], "float32"), expected.astype("float32"), atol=1e-6
        )


@pytest.mark.parametrize("seed", range(3))
def test_it_comes_near_the_exact_metric(seed):
    truth, predictions = random_set(seed, images=6, most_objects=6, most_detections=30, steps=997)
    truth["is_crowds"] &= np.arange(6) < truth["num_detections"][:, None]
    evaluator = COCOEvaluator(need_rescale_bboxes=False)
    evaluator.update_state(truth, predictions)
    evaluator.result()
    exact = evaluator.by_category()
    metric = InstanceMetrics(num_classes=4)
    is_object = np.arange(6) < truth["num_detections"][:, None]
    metric.update_state(
        {
            "boxes": truth["boxes"],
            "classes": np.where(is_object, truth["classes"], -1),
            "is_crowd": truth["is_crowds"],
        },
        {key: value for key, value in predictions.items() if key != "source_id"},
    )
    found = ops.convert_to_numpy(metric.result()["ap"])[0]
    for name, row in exact.items():
        # Equal scores count together here, and in some order there.
        assert found[int(name)] == pytest.approx(row["AP50"], abs=0.03)


def test_masks_are_compared_pixel_by_pixel():
    truth, predictions = random_set(5, images=3, most_objects=4, most_detections=9, steps=997)
    truth["is_crowds"][:] = False
    plain = InstanceMetrics(num_classes=4)
    masked = InstanceMetrics(num_classes=4, use_masks=True)
    labels = {"boxes": truth["boxes"], "classes": truth["classes"]}
    outputs = {key: value for key, value in predictions.items() if key != "source_id"}
    plain.update_state(labels, outputs)

    def filled(boxes):
        y, x = np.mgrid[: SIZE * 2, : SIZE * 2] + 0.5
        top, left, bottom, right = np.moveaxis(boxes, -1, 0)[..., None, None]
        return (y > top) & (y < bottom) & (x > left) & (x < right)

    masked.update_state(
        {**labels, "masks": filled(truth["boxes"] + SIZE / 4)},
        {**outputs, "detection_masks": filled(predictions["detection_boxes"] + SIZE / 4)},
    )
    expected = ops.convert_to_numpy(plain.result()["ap"])
    assert np.any(expected > 0)
    np.testing.assert_allclose(ops.convert_to_numpy(masked.result()["ap"]), expected, atol=1e-6)


def test_a_metric_can_be_made_again_from_its_config():
    algorithms = {"short": COCOAveragePrecision(11), "area": VOC2010AveragePrecision()}
    metric = InstanceMetrics(
        num_classes=3,
        iou_thresholds=(0.5, 0.6),
        average_precision_algorithms=algorithms,
        name="instances",
    )
    again = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert again.iou_thresholds == (0.5, 0.6)
    assert again.name == "instances"
    assert again.average_precision_algorithms["short"].num_recall_eval_points == 11
    assert list(again.result()) == ["short", "area", "valid_classes"]


def test_on_jax():
    run_under_engine("jax", __file__, select="reference")
