"""COCO metrics from arrays: 5,000 images, 30,000 objects, 430,000 detections of 80 classes.

    python benchmarks/coco_eval.py [--images N] [--runs N] [--skip-pycocotools] [--masks]

Each starts from the same arrays of a batch, padded as a model gives them, and ends with the twelve
numbers. pycocotools gets its detections as one array, the quickest way that it has. The metrics
have to agree to 1e-6, or the script fails. On a machine that does other things as well, CPU seconds
tell more than those of the clock.

With --masks, objects and detections have masks, and the metrics are those of masks. The others get
the run-lengths of the pasted masks from hortus, as they paste nothing themselves; so hortus is
shown twice, with pasting and without.
"""

import argparse
import contextlib
import io
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from rich import console, table

from hortus.vision.evaluation import coco_masks
from hortus.vision.evaluation.coco import COCOEvaluator
from hortus.vision.ops.segmentations import encode_segmentation

_BATCH, _ROWS, _CLASSES, _SIZE = 8, 100, 80, 640
_OBJECTS_PER_IMAGE, _DETECTIONS_PER_IMAGE = 6, 86
_SIDE, _CORNERS = 28, 24
"""Of predicted masks, and of the polygons that objects are."""
_Batches = list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]


def make_batches(images: int, with_masks: bool) -> _Batches:
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
        if with_masks:
            truth |= _object_masks(rng, objects)
            predictions |= _predicted_masks(rng, count)
        batches.append((truth, predictions))
    return batches


def _object_masks(rng: np.random.Generator, boxes: np.ndarray) -> dict[str, np.ndarray]:
    """Ellipses with a rough edge, as run-lengths of the whole image."""
    angles = np.linspace(0, 2 * np.pi, _CORNERS, endpoint=False)
    lengths, texts = np.zeros(boxes.shape[:2], np.int32), []
    for image, rows in enumerate(boxes[:, :_OBJECTS_PER_IMAGE]):
        codes = []
        for top, left, bottom, right in rows.tolist():
            radii = rng.uniform(0.8, 1.0, _CORNERS)
            x = (left + right) / 2 + (right - left) / 2 * radii * np.cos(angles)
            y = (top + bottom) / 2 + (bottom - top) / 2 * radii * np.sin(angles)
            polygon = np.stack([x, y], axis=1).reshape(-1).tolist()
            codes.append(encode_segmentation([polygon], _SIZE, _SIZE))
        lengths[image, : len(codes)] = [len(code) for code in codes]
        texts.append(b"".join(codes))
    codes_of = np.zeros((len(boxes), max(map(len, texts))), np.uint8)
    for row, text in zip(codes_of, texts, strict=True):
        row[: len(text)] = np.frombuffer(text, np.uint8)
    sizes = np.full(len(boxes), _SIZE)
    return {"mask_codes": codes_of, "mask_lengths": lengths, "height": sizes, "width": sizes}


def _predicted_masks(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    y, x = (np.mgrid[:_SIDE, :_SIDE] + 0.5) / _SIDE * 2 - 1
    distance = np.hypot(y, x) + rng.normal(0, 0.05, (count, _ROWS, 1, 1))
    masks = 1 / (1 + np.exp(12 * (distance - 0.9)))
    info = np.array([[_SIZE, _SIZE], [_SIZE, _SIZE], [1, 1], [0, 0]], np.float32)
    return {
        "detection_masks": masks.astype(np.float32),
        "image_info": np.tile(info, (count, 1, 1)),
    }


def filled(batches: _Batches, with_masks: bool) -> COCOEvaluator:
    """The evaluator of hortus with all batches in it."""
    evaluator = COCOEvaluator(need_rescale_bboxes=False, include_mask=with_masks)
    for truth, predictions in batches:
        evaluator.update_state(truth, predictions)
    return evaluator


def result(evaluator: COCOEvaluator) -> np.ndarray:
    """The twelve numbers by hortus, of masks where there are any."""
    return np.array(list(evaluator.result().values()))[-12:]


def theirs(
    batches: _Batches, coco_class: Any, eval_class: Any, rles: list[dict[str, Any]] | None
) -> np.ndarray:
    """The same by a package with the interface of pycocotools."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    rows = []
    for truth, predictions in batches:
        images += [{"id": int(i), "height": _SIZE, "width": _SIZE} for i in truth["source_id"]]
        for i, image_id in enumerate(truth["source_id"]):
            codes: list[dict[str, Any]] = []
            if rles is not None:
                parts = truth["mask_codes"][i], truth["mask_lengths"][i]
                codes = coco_masks.from_codes(*parts, [_SIZE, _SIZE])
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
                        **({"segmentation": codes[j]} if codes else {}),
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
    found_rows = np.concatenate(rows)
    results: Any = found_rows
    if rles is not None:
        results = [
            {
                "image_id": int(row[0]),
                "category_id": int(row[6]),
                "score": float(row[5]),
                "segmentation": dict(rle),
            }
            for row, rle in zip(found_rows, rles, strict=True)
        ]
    kind = "bbox" if rles is None else "segm"
    evaluation = eval_class(coco, coco.loadRes(results), kind)
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return np.array(evaluation.stats[:12])


def timed(
    function: Callable[[Any], np.ndarray], prepare: Callable[[], Any], runs: int
) -> tuple[float, float, np.ndarray]:
    """Seconds of the quickest of some runs, of the clock and of the CPU, and what it gave."""
    best, best_cpu, found = float("inf"), float("inf"), np.zeros(0)
    for _ in range(runs):
        prepared = prepare()
        begin, begin_cpu = time.perf_counter(), time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            found = function(prepared)
        best = min(best, time.perf_counter() - begin)
        best_cpu = min(best_cpu, time.process_time() - begin_cpu)
    return best, best_cpu, found


def main() -> int:
    """Prints the table; 1 if the packages do not agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=1, help="best of so many")
    parser.add_argument("--skip-pycocotools", action="store_true", help="it takes a minute or two")
    parser.add_argument("--masks", action="store_true", help="metrics of masks")
    arguments = parser.parse_args()

    import faster_coco_eval
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    masks = arguments.masks
    batches = make_batches(arguments.images, masks)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    evaluator = filled(batches, masks)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    rles = evaluator._predicted.rles if masks else None

    def nothing() -> None:
        return None

    functions: dict[str, tuple[Callable[[Any], np.ndarray], Callable[[], Any]]] = {
        "hortus": (lambda _: result(filled(batches, masks)), nothing)
    }
    if masks:
        functions["hortus, pasted before"] = (result, lambda: filled(batches, masks))
    others = {"faster-coco-eval": (faster_coco_eval.COCO, faster_coco_eval.COCOeval_faster)}
    if not arguments.skip_pycocotools:
        others["pycocotools"] = (COCO, COCOeval)
    for name, classes in others.items():
        functions[name] = (lambda _, classes=classes: theirs(batches, *classes, rles), nothing)
    results = {name: timed(*pair, arguments.runs) for name, pair in functions.items()}

    shown = table.Table("", "seconds", "x hortus", "CPU seconds", "x hortus", "AP", "difference")
    mine, mine_cpu, metrics = next(iter(results.values()))
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
    print(f"with all batches in it, hortus has taken {grown:.0f} MB")
    return 0 if worst < 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
