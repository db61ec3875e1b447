"""COCO metrics from arrays: 5,000 images, 30,000 boxes, 430,000 detections of 80 classes.

    python benchmarks/coco_eval.py [--images N] [--runs N] [--skip-pycocotools]

Each starts from the same arrays of a batch, padded as a model gives them, and ends with the twelve
numbers. pycocotools gets its detections as one array, the quickest way that it has. The metrics
have to agree to 1e-6, or the script fails. On a machine that does other things as well, CPU seconds
tell more than those of the clock.
"""

import argparse
import contextlib
import io
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from rich import console, table

from hortus.vision.evaluation.coco import COCOEvaluator

_BATCH, _ROWS, _CLASSES, _SIZE = 8, 100, 80, 640
_OBJECTS_PER_IMAGE, _DETECTIONS_PER_IMAGE = 6, 86


def make_batches(images: int) -> list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Ground truth and predictions; a third of the detections are near an object."""
    rng = np.random.default_rng(0)

    def boxes(*shape: int) -> np.ndarray:
        begin = rng.uniform(0, _SIZE * 0.8, (*shape, 2))
        extent = np.exp(rng.uniform(np.log(8), np.log(_SIZE * 0.6), (*shape, 2)))
        return np.concatenate([begin, np.minimum(begin + extent, _SIZE)], -1).astype(np.float32)

    batches = []
    for begin in range(0, images, _BATCH):
        count = min(_BATCH, images - begin)
        objects = boxes(count, _ROWS)
        classes = rng.integers(1, _CLASSES + 1, (count, _ROWS))
        ids = np.arange(begin, begin + count) + 1
        near = rng.integers(0, _OBJECTS_PER_IMAGE, (count, _ROWS))
        is_near = rng.random((count, _ROWS)) < 1 / 3
        moved = np.take_along_axis(objects, near[..., None], 1)
        sides = np.tile(moved[..., 2:] - moved[..., :2], 2)
        moved = moved + rng.normal(0, 0.06, moved.shape) * sides
        found = np.where(is_near[..., None], moved, boxes(count, _ROWS)).astype(np.float32)
        extents = objects[..., 2:] - objects[..., :2]
        truth = {
            "source_id": ids,
            "num_detections": np.full(count, _OBJECTS_PER_IMAGE),
            "boxes": objects,
            "classes": classes,
            "areas": extents[..., 0] * extents[..., 1],
            "is_crowds": rng.random((count, _ROWS)) < 0.01,
        }
        predictions = {
            "source_id": ids,
            "num_detections": np.full(count, _DETECTIONS_PER_IMAGE),
            "detection_boxes": found,
            "detection_classes": np.where(
                is_near,
                np.take_along_axis(classes, near, 1),
                rng.integers(1, _CLASSES + 1, (count, _ROWS)),
            ),
            "detection_scores": -np.sort(-rng.random((count, _ROWS))).astype(np.float32),
        }
        batches.append((truth, predictions))
    return batches


def ours(batches: list[Any]) -> np.ndarray:
    """The twelve numbers by hortus."""
    evaluator = COCOEvaluator(need_rescale_bboxes=False)
    for truth, predictions in batches:
        evaluator.update_state(truth, predictions)
    return np.array(list(evaluator.result().values()))


def theirs(batches: list[Any], coco_class: Any, eval_class: Any) -> np.ndarray:
    """The same by a package with the interface of pycocotools."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    rows = []
    for truth, predictions in batches:
        images += [{"id": int(i), "height": _SIZE, "width": _SIZE} for i in truth["source_id"]]
        for i, image_id in enumerate(truth["source_id"]):
            for j in range(truth["num_detections"][i]):
                top, left, bottom, right = truth["boxes"][i, j].tolist()
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": int(image_id),
                        "category_id": int(truth["classes"][i, j]),
                        "bbox": [left, top, right - left, bottom - top],
                        "area": float(truth["areas"][i, j]),
                        "iscrowd": int(truth["is_crowds"][i, j]),
                    }
                )
            count = predictions["num_detections"][i]
            found = predictions["detection_boxes"][i, :count].astype(np.float64)
            columns = [np.full(count, image_id), found[:, 1], found[:, 0]]
            columns += [found[:, 3] - found[:, 1], found[:, 2] - found[:, 0]]
            columns.append(predictions["detection_scores"][i, :count])
            columns.append(predictions["detection_classes"][i, :count])
            rows.append(np.stack(columns, axis=1))
    coco = coco_class()
    coco.dataset = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": number, "name": str(number)} for number in range(1, _CLASSES + 1)],
    }
    coco.createIndex()
    evaluation = eval_class(coco, coco.loadRes(np.concatenate(rows)), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return np.array(evaluation.stats[:12])


def timed(function: Callable[[], np.ndarray], runs: int) -> tuple[float, float, np.ndarray]:
    """Seconds of the quickest of some runs, of the clock and of the CPU, and what it gave."""
    best, best_cpu, result = float("inf"), float("inf"), np.zeros(0)
    for _ in range(runs):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            result = function()
        best = min(best, time.perf_counter() - begin)
        best_cpu = min(best_cpu, time.process_time() - begin_cpu)
    return best, best_cpu, result


def main() -> int:
    """Prints the table; 1 if the packages do not agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=1, help="best of so many")
    parser.add_argument("--skip-pycocotools", action="store_true", help="it takes a minute or two")
    arguments = parser.parse_args()

    import faster_coco_eval
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    batches = make_batches(arguments.images)
    functions: dict[str, Callable[[], np.ndarray]] = {
        "hortus": lambda: ours(batches),
        "faster-coco-eval": lambda: theirs(
            batches, faster_coco_eval.COCO, faster_coco_eval.COCOeval_faster
        ),
    }
    if not arguments.skip_pycocotools:
        functions["pycocotools"] = lambda: theirs(batches, COCO, COCOeval)
    results = {name: timed(function, arguments.runs) for name, function in functions.items()}

    shown = table.Table("", "seconds", "x hortus", "CPU seconds", "x hortus", "AP", "difference")
    mine, mine_cpu, metrics = results["hortus"]
    worst = 0.0
    for name, (seconds, cpu_seconds, values) in results.items():
        difference = float(np.max(np.abs(values - metrics)))
        worst = max(worst, difference)
        shown.add_row(
            name,
            f"{seconds:.2f}",
            f"{seconds / mine:.1f}",
            f"{cpu_seconds:.2f}",
            f"{cpu_seconds / mine_cpu:.1f}",
            f"{values[0]:.6f}",
            f"{difference:.1e}",
        )
    console.Console().print(shown)
    return 0 if worst < 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
