import contextlib
import io
import json

import numpy as np
import pytest
from pycocotools import mask as oracle
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from hortus.testing import reference_dir
from hortus.vision.evaluation import coco_masks
from hortus.vision.evaluation.coco import COCOEvaluator
from hortus.vision.evaluation.coco_accumulation import evaluate
from hortus.vision.evaluation.coco_matching import Detections, Objects
from hortus.vision.ops.segmentations import encode_segmentation

pytestmark = pytest.mark.filterwarnings("ignore:__array__")  # of pycocotools


def test_pasting_is_that_of_the_reference():
    golden = np.load(reference_dir() / "golden" / "mask_paste.npz")
    expected = golden["paste_instance_masks_v1_64x80"]
    for mask, (x, y, w, h), pixels in zip(
        golden["masks"], golden["boxes_used"], expected, strict=True
    ):
        pasted = coco_masks.paste(mask, np.array([y, x, y + h, x + w]), 64, 80)
        np.testing.assert_array_equal(pasted, pixels)


@pytest.mark.parametrize(
    "box", [[-50, -50, -20, -20], [90, 90, 99, 99], [5, 5, 5, 5], [np.nan, 0, 1, 1]]
)
def test_a_box_that_is_not_in_the_image_covers_little_or_nothing(box):
    pasted = coco_masks.paste(np.ones((28, 28)), np.array(box), 40, 40)
    assert pasted.shape == (40, 40)
    assert pasted.sum() <= 1


@pytest.mark.parametrize("seed", range(8))
def test_what_is_pasted_is_encoded_without_a_bitmap(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        height, width = (int(side) for side in rng.integers(1, 60, 2))
        mask = rng.random((7, 9)) if rng.random() < 0.5 else np.ones((7, 9))
        corner = rng.uniform(-20, 50, 2)
        # Some reach over all of the image, so that runs go on from column to column.
        box = np.r_[corner, corner + rng.choice([1, 10, 300]) * rng.random(2)]
        box = np.array([-30, -30, 100, 100]) if rng.random() < 0.2 else box
        arguments = (mask, box, height, width, rng.random() < 0.5)
        expected = coco_masks.encode(coco_masks.paste(*arguments)[None])[0]
        found = coco_masks.paste_encoded(*arguments)
        assert (found["size"], found["counts"]) == ([height, width], expected["counts"])
    nowhere = coco_masks.paste_encoded(mask, np.full(4, np.nan), 5, 5)
    assert coco_masks.areas([nowhere])[0] == 0


def test_codes_of_a_batch_are_taken_apart():
    masks = np.zeros((3, 6, 8), np.uint8)
    masks[0, 1:4, 2:5], masks[2, :, 7] = 1, 1
    rles = coco_masks.encode(masks)
    codes = [each["counts"] for each in rles]
    lengths = np.array([len(codes[0]), 0, len(codes[2]), 0])
    text = np.frombuffer(codes[0] + codes[2] + bytes(10), np.uint8)
    found = coco_masks.from_codes(text, lengths, [6, 8])
    np.testing.assert_array_equal(coco_masks.areas(found), [9, 0, 6, 0])
    assert [found[0], found[2]] == [rles[0], rles[2]]
    with pytest.raises(ValueError, match="characters of masks are told, but there are 3"):
        coco_masks.from_codes(text[:3], lengths, [6, 8])


def test_masks_are_compared_as_pycocotools_does():
    rng = np.random.default_rng(0)
    images, categories, size = 3, 2, 40

    def blobs(count):
        masks = np.zeros((count, size, size), np.uint8)
        for mask in masks:
            y, x, h, w = rng.integers(0, 20, 4)
            mask[y : y + h + 2, x : x + w + 2] = rng.random((h + 2, w + 2))[: size - y] < 0.9
        return masks

    def rows(count):
        return np.sort(rng.integers(0, images, count)), rng.integers(0, categories, count)

    (image, category), masks = rows(14), blobs(14)
    crowd = rng.random(14) < 0.3
    rles = coco_masks.encode(masks)
    boxes = np.zeros((14, 4))
    objects = Objects(image, category, boxes, coco_masks.areas(rles), crowd, crowd)
    (found_image, found_category), found = rows(60), blobs(60)
    found[:14] = masks
    found_image[:14], found_category[:14] = image, category
    order = np.argsort(found_image, kind="stable")
    found, found_image, found_category = found[order], found_image[order], found_category[order]
    found_rles = coco_masks.encode(found)
    detections = Detections(
        found_image,
        found_category,
        np.zeros((60, 4)),
        coco_masks.areas(found_rles),
        np.round(rng.random(60), 1),
    )
    overlap = coco_masks.mask_overlap(objects, detections, rles, found_rles)
    ours = evaluate(objects, detections, categories, overlap=overlap)

    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {
            "images": [{"id": i, "height": size, "width": size} for i in range(images)],
            "categories": [{"id": i} for i in range(categories)],
            "annotations": [
                {
                    "id": row + 1,
                    "image_id": int(image[row]),
                    "category_id": int(category[row]),
                    "segmentation": rles[row],
                    "area": float(objects.areas[row]),
                    "bbox": [0, 0, 1, 1],
                    "iscrowd": int(crowd[row]),
                }
                for row in range(14)
            ],
        }
        coco.createIndex()
        results = coco.loadRes(
            [
                {
                    "image_id": int(found_image[row]),
                    "category_id": int(found_category[row]),
                    "segmentation": found_rles[row],
                    "score": float(detections.scores[row]),
                }
                for row in range(60)
            ]
        )
        theirs = COCOeval(coco, results, "segm")
        theirs.evaluate()
        theirs.accumulate()
    np.testing.assert_array_equal(ours.precision, theirs.eval["precision"][..., -1])
    np.testing.assert_array_equal(ours.recall, theirs.eval["recall"])
    assert ours.average_precision(0.5) > 0.3


def test_polygons_and_encodings_are_read():
    square = [[2.0, 2.0, 2.0, 6.0, 6.0, 6.0, 6.0, 2.0]]
    from_polygon = coco_masks.from_segmentation(square, 10, 10)
    assert coco_masks.areas([from_polygon])[0] == 16
    counts = {"size": [10, 10], "counts": [22, 4, 74]}
    assert coco_masks.areas([coco_masks.from_segmentation(counts, 10, 10)])[0] == 4
    assert coco_masks.from_segmentation(from_polygon, 10, 10) == from_polygon
    nothing = coco_masks.from_segmentation([], 10, 10)
    assert coco_masks.areas([nothing])[0] == 0


# ---- the evaluator, from files and batches to numbers ---------------------------------------


def polygon(rng, height, width, corners=7):
    """A polygon around a random middle, which may cross itself and leave the image."""
    middle = rng.uniform(0.15, 0.85, 2) * [width, height]
    angles = rng.uniform(0, 2 * np.pi, corners)
    angles = np.sort(angles) if rng.random() < 0.7 else angles
    radii = rng.uniform(2, 0.35 * min(height, width), (corners, 1))
    corners = middle + radii * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return [round(float(value), 2) for value in corners.reshape(-1)]


def annotation_content(rng, images=5, categories=3):
    """Images of different sizes with polygons, run-lengths of both kinds, and crowds."""
    sizes = [tuple(int(side) for side in rng.integers(40, 90, 2)) for _ in range(images)]
    annotations = []
    for image, (height, width) in enumerate(sizes):
        for number in range(int(rng.integers(1, 8))):
            polygons = [polygon(rng, height, width) for _ in range(rng.integers(1, 3))]
            code = oracle.merge(oracle.frPyObjects(polygons, height, width))
            bitmap = oracle.decode(code)
            if not bitmap.any():
                continue
            is_crowd = number == 2
            runs = np.diff(np.flatnonzero(np.diff(np.r_[0, bitmap.T.reshape(-1), 2])), prepend=0)
            kinds = [
                polygons,
                {"size": [height, width], "counts": code["counts"].decode()},
                {"size": [height, width], "counts": runs.tolist()},
            ]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image + 1,
                    "category_id": int(rng.integers(1, categories + 1)),
                    "segmentation": kinds[2 if is_crowd else number % 2],
                    "bbox": [float(edge) for edge in oracle.toBbox(code)],
                    "area": float(bitmap.sum()),
                    "iscrowd": int(is_crowd),
                }
            )
    return {
        "images": [
            {"id": i + 1, "height": height, "width": width, "file_name": f"{i}.png"}
            for i, (height, width) in enumerate(sizes)
        ],
        "annotations": annotations,
        "categories": [{"id": i, "name": f"c{i}"} for i in range(1, categories + 1)],
    }


def seen(annotation, image, side):
    """The mask of an object in its box, bool [side, side]."""
    size = [image["height"], image["width"]]
    code = encode_segmentation(annotation["segmentation"], *size)
    bitmap = oracle.decode({"size": size, "counts": code}) > 0
    x, y, w, h = (int(edge) for edge in annotation["bbox"])
    crop = bitmap[y : y + h, x : x + w]
    places = 2 * np.arange(side) + 1
    return crop[places * h // (2 * side)][:, places * w // (2 * side)]


def predictions_for(rng, content, rows=20, side=14):
    """Masks in boxes, some of them near an object, for all images in one batch."""
    count = len(content["images"])
    found = {
        "source_id": np.array([each["id"] for each in content["images"]]),
        "num_detections": rng.integers(rows // 2, rows + 1, count),
        "detection_boxes": np.zeros((count, rows, 4), np.float32),
        "detection_scores": np.round(rng.random((count, rows)), 2).astype(np.float32),
        "detection_classes": rng.integers(1, 4, (count, rows)),
        "detection_masks": rng.random((count, rows, side, side)).astype(np.float32) ** 0.3,
        "image_info": np.zeros((count, 4, 2), np.float32),
    }
    for image, each in enumerate(content["images"]):
        found["image_info"][image] = [[each["height"], each["width"]], [99, 99], [1, 1], [0, 0]]
        objects = [a for a in content["annotations"] if a["image_id"] == each["id"]]
        for row in range(rows):
            target = objects[rng.integers(len(objects))] if objects else None
            if target is None or rng.random() < 0.3:
                x, y = rng.uniform(0, 40, 2)
                w, h = rng.uniform(2, 50, 2)
            else:
                x, y, w, h = np.array(target["bbox"]) + rng.normal(0, 0.5, 4)
                found["detection_classes"][image, row] = target["category_id"]
                noise = rng.random((side, side)) < 0.1
                found["detection_masks"][image, row] = seen(target, each, side) ^ noise
            found["detection_boxes"][image, row] = [y, x, y + h, x + w]
    return found


def theirs(content, found, aligned):
    """The twelve numbers of pycocotools, which gets bitmaps of the whole image."""
    results = []
    for image, source_id in enumerate(found["source_id"]):
        height, width = (int(side) for side in found["image_info"][image, 0])
        for row in range(found["num_detections"][image]):
            box = found["detection_boxes"][image, row]
            mask = found["detection_masks"][image, row]
            bitmap = coco_masks.paste(mask, box, height, width, aligned)
            top, left, bottom, right = box.astype(np.float64)
            results.append(
                {
                    "image_id": int(source_id),
                    "category_id": int(found["detection_classes"][image, row]),
                    "score": float(found["detection_scores"][image, row]),
                    "segmentation": oracle.encode(np.asfortranarray(bitmap.astype(np.uint8))),
                    "bbox": [left, top, right - left, bottom - top],
                }
            )
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = json.loads(json.dumps(content))
        coco.createIndex()
        loaded = coco.loadRes(results)
        for each in loaded.dataset["annotations"]:
            each["area"] = float(oracle.area(each["segmentation"]))
        evaluation = COCOeval(coco, loaded, "segm")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats


def truths_of(content):
    """What a batch of the pipeline holds of the same objects."""
    count, rows = len(content["images"]), 10
    truth = {
        "source_id": np.array([each["id"] for each in content["images"]]),
        "height": np.array([each["height"] for each in content["images"]]),
        "width": np.array([each["width"] for each in content["images"]]),
        "num_detections": np.zeros(count, int),
        "boxes": np.full((count, rows, 4), -1, np.float32),
        "classes": np.full((count, rows), -1),
        "areas": np.full((count, rows), -1, np.float32),
        "is_crowds": np.zeros((count, rows), bool),
        "mask_lengths": np.zeros((count, rows), np.int32),
        "mask_codes": np.zeros((count, 5000), np.uint8),
    }
    for image, each in enumerate(content["images"]):
        objects = [a for a in content["annotations"] if a["image_id"] == each["id"]]
        text = b""
        for row, one in enumerate(objects):
            x, y, w, h = one["bbox"]
            truth["boxes"][image, row] = [y, x, y + h, x + w]
            truth["classes"][image, row] = one["category_id"]
            truth["areas"][image, row] = one["area"]
            truth["is_crowds"][image, row] = one["iscrowd"]
            code = encode_segmentation(one["segmentation"], each["height"], each["width"])
            truth["mask_lengths"][image, row] = len(code)
            text += code
        truth["num_detections"][image] = len(objects)
        truth["mask_codes"][image, : len(text)] = np.frombuffer(text, np.uint8)
    return truth


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("origin", ["file", "batch"])
def test_mask_metrics_are_those_of_pycocotools(tmp_path, seed, origin):
    rng = np.random.default_rng(seed)
    content = annotation_content(rng)
    found = predictions_for(rng, content)
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(content))
    aligned = bool(seed % 2)
    evaluator = COCOEvaluator(
        str(path) if origin == "file" else None,
        include_mask=True,
        need_rescale_bboxes=False,
        aligned_masks=aligned,
    )
    evaluator.update_state(None if origin == "file" else truths_of(content), found)
    metrics = list(evaluator.result().values())
    expected = theirs(content, found, aligned)
    assert expected[0] > 0.01
    # Ours are float32.
    np.testing.assert_allclose(metrics[12:], expected, atol=1e-7)


def test_the_truth_as_predictions_is_perfect():
    content = annotation_content(np.random.default_rng(9))
    for each in content["annotations"]:
        each["iscrowd"] = 0
    truth = truths_of(content)
    count, rows = truth["classes"].shape
    found = {
        "source_id": truth["source_id"],
        "num_detections": truth["num_detections"],
        "detection_boxes": truth["boxes"],
        "detection_scores": np.full((count, rows), 0.9, np.float32),
        "detection_classes": truth["classes"],
        "detection_masks": np.zeros((count, rows, 112, 112), np.float32),
        "image_info": np.zeros((count, 4, 2), np.float32),
    }
    for number, image in enumerate(content["images"]):
        found["image_info"][number, 0] = image["height"], image["width"]
        objects = [each for each in content["annotations"] if each["image_id"] == image["id"]]
        for row, each in enumerate(objects):
            found["detection_masks"][number, row] = seen(each, image, 112)
    evaluator = COCOEvaluator(include_mask=True, need_rescale_bboxes=False, aligned_masks=True)
    evaluator.update_state(truth, found)
    metrics = evaluator.result()
    # Masks are finer than the pixels, so that nothing is lost on the way.
    assert metrics["AP"] == 1.0 and metrics["mask_AP"] == 1.0


def test_masks_of_outer_boxes_are_pasted_there():
    content = annotation_content(np.random.default_rng(3))
    found = predictions_for(np.random.default_rng(4), content)
    evaluator = COCOEvaluator(include_mask=True, need_rescale_bboxes=False)
    evaluator.update_state(truths_of(content), found)
    expected = evaluator.result()
    moved = {**found, "detection_outer_boxes": found["detection_boxes"]}
    moved["detection_boxes"] = found["detection_boxes"] + 1000.0
    evaluator.update_state(truths_of(content), moved)
    metrics = evaluator.result()
    assert metrics["mask_AP"] == expected["mask_AP"] > 0
    assert metrics["AP"] == 0
