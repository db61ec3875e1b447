import contextlib
import io
import json
import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from hortus.testing import reference_dir
from hortus.vision.evaluation.coco import COCOEvaluator

KEYS = ("AP", "AP50", "AP75", "APs", "APm", "APl")
RECALL_KEYS = ("ARmax1", "ARmax10", "ARmax100", "ARs", "ARm", "ARl")
SIZE = 240


def random_set(seed, images=4, categories=3, most_objects=5, most_detections=12, grid=8, steps=5):
    """Ground truth and predictions on a coarse grid, so that overlaps and scores are often equal.

    Some objects are crowds; some images have no objects, some no detections.
    """
    rng = np.random.default_rng(seed)

    def boxes(*shape):
        begin = rng.integers(0, SIZE // grid - 1, (*shape, 2))
        extent = rng.integers(
            1, 1 + SIZE // grid // rng.choice([1, 2, 6], (*shape, 1)), (*shape, 2)
        )
        return (np.concatenate([begin, begin + extent], axis=-1) * grid).astype(np.float32)

    objects = boxes(images, most_objects)
    classes = rng.integers(1, categories + 1, (images, most_objects))
    detections = boxes(images, most_detections)
    found_classes = rng.integers(1, categories + 1, (images, most_detections))
    if most_objects:
        # Half of the detections are near an object.
        near = rng.integers(0, most_objects, (images, most_detections))
        is_near = rng.random((images, most_detections)) < 0.5
        moved = np.take_along_axis(objects, near[..., None], 1)
        moved = moved + rng.integers(-1, 2, moved.shape) * grid / 2
        is_near &= np.all(moved[..., 2:] > moved[..., :2], axis=-1)
        detections = np.where(is_near[..., None], moved, detections).astype(np.float32)
        found_classes = np.where(is_near, np.take_along_axis(classes, near, 1), found_classes)
    ids = rng.permutation(1000)[:images]
    sides = objects[..., 2:] - objects[..., :2]
    truth = {
        "source_id": ids,
        "num_detections": rng.integers(0, most_objects + 1, images),
        "boxes": objects,
        "classes": classes,
        "is_crowds": rng.random((images, most_objects)) < 0.2,
        "areas": (sides[..., 0] * sides[..., 1] * rng.choice([0.5, 1.0])).astype(np.float32),
    }
    predictions = {
        "source_id": ids,
        "num_detections": rng.integers(0, most_detections + 1, images) * (rng.random(images) < 0.8),
        "detection_boxes": detections,
        "detection_classes": found_classes,
        "detection_scores": (rng.integers(0, steps, (images, most_detections)) / steps).astype(
            np.float32
        ),
    }
    return truth, predictions


def as_coco(truth, categories):
    annotations = []
    for image, count in enumerate(truth["num_detections"]):
        for row in range(count):
            y, x, bottom, right = truth["boxes"][image, row].tolist()
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": int(truth["source_id"][image]),
                    "category_id": int(truth["classes"][image, row]),
                    "bbox": [x, y, right - x, bottom - y],
                    "area": float(truth["areas"][image, row]),
                    "iscrowd": int(truth["is_crowds"][image, row]),
                }
            )
    return {
        "images": [{"id": int(i), "height": SIZE, "width": SIZE} for i in truth["source_id"]],
        "annotations": annotations,
        "categories": [{"id": number, "name": f"c{number}"} for number in categories],
    }


def pycocotools_metrics(truth, predictions, categories, max_detections=100):
    """What pycocotools says, and its AP over any number of detections, which it hides."""
    rows = [
        [image_id, x, y, right - x, bottom - y, score, number]
        for image_id, count, boxes, scores, classes in zip(
            predictions["source_id"],
            predictions["num_detections"],
            predictions["detection_boxes"],
            predictions["detection_scores"],
            predictions["detection_classes"],
            strict=True,
        )
        for (y, x, bottom, right), score, number in zip(
            boxes[:count], scores[:count], classes[:count], strict=True
        )
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = as_coco(truth, categories)
        coco.createIndex()
        found = coco.loadRes(np.array(rows, np.float64).reshape(-1, 7)) if rows else COCO()
        if not rows:
            found.dataset = {**coco.dataset, "annotations": []}
            found.createIndex()
        evaluation = COCOeval(coco, found, "bbox")
        evaluation.params.maxDets = [1, 10, max_detections]
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    metrics = dict(zip((*KEYS, *RECALL_KEYS), evaluation.stats, strict=True))
    precision = evaluation.eval["precision"][:, :, :, 0, -1]
    metrics["AP"] = precision[precision > -1].mean() if np.any(precision > -1) else -1.0
    return metrics


def run(truth, predictions, batch=3, **options):
    evaluator = COCOEvaluator(need_rescale_bboxes=False, **options)
    for begin in range(0, len(truth["source_id"]), batch):
        part = slice(begin, begin + batch)
        evaluator.update_state(
            {key: value[part] for key, value in truth.items()},
            {key: value[part] for key, value in predictions.items()},
        )
    return evaluator.result(), evaluator


# float32 results of float64 sums, so 1e-6 is the rounding of the result alone.
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    images=st.integers(1, 6),
    categories=st.integers(1, 3),
    most_objects=st.integers(0, 8),
    most_detections=st.sampled_from([0, 1, 7, 30, 130]),
    steps=st.sampled_from([1, 2, 10, 10**6]),
    batch=st.integers(1, 6),
)
def test_metrics_are_those_of_pycocotools(seed, batch, categories, **sizes):
    truth, predictions = random_set(seed, categories=categories, **sizes)
    metrics, _ = run(truth, predictions, batch)
    expected = pycocotools_metrics(truth, predictions, range(1, categories + 1))
    assert metrics.keys() == expected.keys()
    for key, value in expected.items():
        assert metrics[key] == pytest.approx(value, abs=1e-6), key


def test_of_equal_overlaps_the_last_object_is_taken():
    # The first detection overlaps both objects alike; the second one has to have the first object.
    truth = {
        "source_id": np.array([1]),
        "num_detections": np.array([2]),
        "boxes": np.array([[[0, 0, 50, 50], [0, 10, 50, 60]]], np.float32),
        "classes": np.array([[1, 1]]),
        "is_crowds": np.zeros((1, 2), bool),
        "areas": np.full((1, 2), 2500.0),
    }
    predictions = {
        "source_id": np.array([1]),
        "num_detections": np.array([2]),
        "detection_boxes": np.array([[[0, 5, 50, 55], [0, 0, 50, 50]]], np.float32),
        "detection_classes": np.array([[1, 1]]),
        "detection_scores": np.array([[0.9, 0.8]], np.float32),
    }
    metrics, _ = run(truth, predictions)
    expected = pycocotools_metrics(truth, predictions, [1])
    assert metrics["AP75"] == 1.0
    assert metrics == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("limit", [3, 10, 25, 300])
def test_any_number_of_detections_counts(limit):
    truth, predictions = random_set(0, most_detections=310, categories=1, steps=1000)
    metrics, _ = run(truth, predictions, max_num_eval_detections=limit)
    if limit < 10:
        assert "ARmax10" not in metrics
        limits = [1, limit]
    else:
        limits = [1, 10, limit]
        expected = pycocotools_metrics(truth, predictions, [1], limit)
        for key in KEYS:
            assert metrics[key] == pytest.approx(expected[key], abs=1e-6), key
        assert metrics[f"ARmax{limit}"] == pytest.approx(expected["ARmax100"], abs=1e-6)
    recalls = [metrics[f"ARmax{each}"] for each in limits]
    assert recalls == sorted(recalls)
    assert metrics["AP"] > 0


def test_ground_truth_as_predictions_is_perfect():
    truth, _ = random_set(3, images=12, most_objects=9)
    truth["is_crowds"][:] = False
    # Boxes of one class in one image have to differ, or one of them is found twice.
    truth["boxes"][..., :2] = truth["boxes"][..., :2] // 2
    truth["boxes"][..., 2:] = truth["boxes"][..., 2:] + np.arange(9)[:, None] * 3
    predictions = {
        "source_id": truth["source_id"],
        "num_detections": truth["num_detections"],
        "detection_boxes": truth["boxes"],
        "detection_classes": truth["classes"],
        "detection_scores": np.ones(truth["classes"].shape, np.float32),
    }
    metrics, evaluator = run(truth, predictions)
    assert metrics["AP"] == 1.0
    assert metrics["ARmax100"] == 1.0
    assert all(row["AP"] == 1.0 for row in evaluator.by_category().values())


def test_box_metrics_of_the_reference():
    golden = np.load(reference_dir() / "golden" / "coco.npz")
    for name, options in (
        ("box_max100", {}),
        ("box_percat", {"per_category_metrics": True}),
        ("box_max10_percat", {"max_num_eval_detections": 10}),
    ):
        evaluator = COCOEvaluator(**options)
        evaluator.update_state(*golden_inputs(golden))
        metrics = evaluator.result()
        for key, value in golden_metrics(golden, name).items():
            if value != -1:  # The reference has no AP where the maximum is not 100.
                assert metrics[key] == pytest.approx(value, abs=1e-6), (name, key)
        assert metrics["AP"] == pytest.approx(0.333571, abs=1e-6)


def test_mask_metrics_of_the_reference(tmp_path):
    golden = np.load(reference_dir() / "golden" / "coco.npz")
    path = tmp_path / "truth.json"
    path.write_text(str(golden["mask/annotation_json"]))
    evaluator = COCOEvaluator(str(path), include_mask=True)
    _, predictions = golden_inputs(golden)
    predictions["detection_masks"] = golden["mask/detection_masks"]
    evaluator.update_state(None, predictions)
    metrics = evaluator.result()
    expected = golden_metrics(golden, "mask")
    assert metrics.keys() == expected.keys()
    for key, value in expected.items():
        assert metrics[key] == pytest.approx(value, abs=1e-6), key


def test_masks_of_the_ground_truth_can_come_with_the_batches():
    boxes = np.array([[[20, 30, 60, 90], [100, 10, 180, 80]], [[5, 5, 45, 85], [0, 0, 0, 0]]])
    y, x = np.mgrid[:SIZE, :SIZE] + 0.5
    top, left, bottom, right = np.moveaxis(boxes, -1, 0)[..., None, None]
    truth = {
        "source_id": np.array([1, 2]),
        "num_detections": np.array([2, 1]),
        "boxes": boxes,
        "classes": np.array([[1, 2], [1, -1]]),
        "masks": (y > top) & (y < bottom) & (x > left) & (x < right),
        "height": np.array([200, 100]),
        "width": np.array([SIZE, SIZE]),
    }
    info = np.array([[[200, SIZE]] * 2 + [[1, 1], [0, 0]], [[100, SIZE]] * 2 + [[1, 1], [0, 0]]])
    predictions = {
        "source_id": np.array([1, 2]),
        "num_detections": np.array([2, 1]),
        "detection_boxes": boxes,
        "detection_classes": np.array([[1, 2], [1, 0]]),
        "detection_scores": np.ones((2, 2)),
        "detection_masks": np.ones((2, 2, 28, 28)),
        "image_info": info,
    }
    evaluator = COCOEvaluator(include_mask=True)
    evaluator.update_state(truth, predictions)
    metrics = evaluator.result()
    assert metrics["AP"] == 1.0
    # A full mask of a box covers about one pixel more on each side.
    assert metrics["mask_AP75"] == 1.0
    assert list(evaluator.curves("mask")) == ["1", "2"]


def golden_inputs(golden):
    return tuple(
        {key.removeprefix(prefix): golden[key] for key in golden if key.startswith(prefix)}
        for prefix in ("gt/", "pred/")
    )


def golden_metrics(golden, name):
    prefix = f"COCOEvaluator/{name}/"
    return {
        key.removeprefix(prefix): float(golden[key])
        for key in golden
        if key.startswith(prefix) and not key.endswith("_input_variant")
    }


def test_an_annotation_file_gives_the_same_and_maps_classes_by_name(tmp_path):
    truth, predictions = random_set(11, images=6)
    content = as_coco(truth, [1, 2, 3])
    # In the file the ids have gaps, and another order than the classes of the model.
    new_ids = {1: 70, 2: 5, 3: 12}
    for annotation in content["annotations"]:
        annotation["category_id"] = new_ids[annotation["category_id"]]
    for category in content["categories"]:
        category["id"] = new_ids[category["id"]]
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(content))
    names = ("c1", "c2", "c3")
    expected, _ = run(truth, predictions, class_names=names, per_category_metrics=True)
    metrics, _ = run(
        truth,
        predictions,
        class_names=names,
        per_category_metrics=True,
        annotation_file=str(path),
    )
    assert metrics == pytest.approx(expected, abs=1e-6)
    assert "AP50/c2" in metrics

    strangers = COCOEvaluator(str(path), need_rescale_bboxes=False, class_names=("dog",))
    strangers.update_state(None, predictions)
    with pytest.raises(ValueError, match="no category of the annotation file"):
        strangers.result()


def test_images_of_an_annotation_file_count_once_and_only_if_evaluated(tmp_path, caplog):
    truth, predictions = random_set(5, images=5)
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(as_coco(truth, [1, 2, 3])))
    seen = slice(0, 3)
    part = {key: value[seen] for key, value in predictions.items()}
    expected, _ = run({key: value[seen] for key, value in truth.items()}, part)
    evaluator = COCOEvaluator(str(path), need_rescale_bboxes=False)
    evaluator.update_state(None, part)
    evaluator.update_state(None, part)
    with caplog.at_level(logging.WARNING):
        assert evaluator.result() == pytest.approx(expected, abs=1e-6)
    assert "3 of the 5 images" in caplog.text

    evaluator.update_state(None, {**part, "source_id": part["source_id"] + 5000})
    with pytest.raises(ValueError, match="none of the images"):
        evaluator.result()


def test_a_difficult_object_counts_neither_way():
    truth = {
        "source_id": [np.array([1])],
        "num_detections": [np.array([2])],
        "boxes": [np.array([[[0, 0, 50, 50], [100, 100, 150, 150]]], np.float32)],
        "classes": [np.array([[1, 1]])],
        "is_difficults": [np.array([[False, True]])],
    }
    predictions = {
        "source_id": [np.array([1])],
        "num_detections": [np.array([3])],
        # The difficult one is found twice, with better scores than the other.
        "detection_boxes": [
            np.array([[[100, 100, 150, 150], [100, 100, 150, 148], [0, 0, 50, 50]]], np.float32)
        ],
        "detection_classes": [np.array([[1, 1, 1]])],
        "detection_scores": [np.array([[0.9, 0.8, 0.5]], np.float32)],
    }
    evaluator = COCOEvaluator(need_rescale_bboxes=False)
    evaluator.update_state(truth, predictions)
    metrics = evaluator.result()
    assert metrics["AP"] == 1.0
    assert evaluator.by_category()["1"]["objects"] == 1


def test_curves_and_categories_follow_the_detections():
    truth, predictions = random_set(1, images=8, most_objects=8, most_detections=40, steps=1000)
    _, evaluator = run(truth, predictions, class_names=("ant", "bee", "cat"))
    curves = evaluator.curves()
    assert list(curves) == ["ant", "bee", "cat"]
    for name, row in evaluator.by_category().items():
        curve = curves[name]
        assert row["AP50"] == pytest.approx(curve.precision.mean(), abs=1e-12)
        assert np.all(np.diff(curve.precision) <= 0)
        reached = curve.precision > 0
        assert np.all(np.diff(curve.scores[reached]) <= 0)


def test_boxes_are_brought_back_from_the_resized_image():
    truth, predictions = random_set(2)
    expected, _ = run(truth, predictions)
    info = np.tile(
        np.array([[SIZE, SIZE], [480, 480], [2.0, 4.0], [3.0, 5.0]], np.float32), (4, 1, 1)
    )
    scale, offset = np.tile(info[0, 2], 2), np.tile(info[0, 3], 2)
    resized = {
        **predictions,
        "detection_boxes": predictions["detection_boxes"] * scale - offset,
        "image_info": info,
    }
    evaluator = COCOEvaluator()
    evaluator.update_state(truth, resized)
    assert evaluator.result() == expected


def test_memory_holds_detections_and_not_padding():
    truth, predictions = random_set(4, images=4, most_detections=130)
    evaluator = COCOEvaluator(need_rescale_bboxes=False)
    for _ in range(3):
        evaluator.update_state(truth, predictions)
    kept = evaluator._predicted.columns()
    assert len(kept["scores"]) == 3 * predictions["num_detections"].sum()
    assert not any(
        part.base is not None for each in evaluator._predicted._parts for part in each.values()
    )
    evaluator.result()
    with pytest.raises(ValueError, match="nothing was evaluated"):
        evaluator.result()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda t, p: t.update(num_detections=t["num_detections"] * 0), "no objects"),
        (lambda t, p: p.update(num_detections=p["num_detections"] * 0), "no detections"),
        (lambda t, p: p.update(detection_classes=p["detection_classes"] + 50), "no detection is"),
        (lambda t, p: p.update(detection_boxes=p["detection_boxes"] / 500), "shares of the image"),
    ],
)
def test_a_precision_of_zero_has_a_reason(change, text, caplog):
    truth, predictions = random_set(6)
    change(truth, predictions)
    with caplog.at_level(logging.WARNING):
        metrics, _ = run(truth, predictions)
    assert metrics["AP"] in (0.0, -1.0)
    assert text in caplog.text


def test_batches_that_do_not_fit_are_errors():
    truth, predictions = random_set(0)
    evaluator = COCOEvaluator()
    with pytest.raises(ValueError, match="predictions lack image_info"):
        evaluator.update_state(truth, predictions)
    evaluator = COCOEvaluator(need_rescale_bboxes=False)
    with pytest.raises(ValueError, match="not of the same images"):
        evaluator.update_state({**truth, "source_id": truth["source_id"] + 1}, predictions)
    with pytest.raises(ValueError, match="ground truth is needed"):
        evaluator.update_state(None, predictions)
