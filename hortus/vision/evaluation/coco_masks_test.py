import contextlib
import io

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from hortus.testing import reference_dir
from hortus.vision.evaluation import coco_masks
from hortus.vision.evaluation.coco_accumulation import evaluate
from hortus.vision.evaluation.coco_matching import Detections, Objects


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
    assert coco_masks.from_segmentation(from_polygon, 10, 10) is from_polygon
