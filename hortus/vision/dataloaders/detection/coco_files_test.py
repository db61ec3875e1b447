import json
import pathlib

import numpy as np
import pytest

from hortus.testing import detection_files, instance_files
from hortus.vision.dataloaders.detection import coco_files
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.ops.segmentations import decode_bitmap


def test_columns_say_what_the_file_says(tmp_path):
    data = coco_files.read_coco(detection_files.write_coco(tmp_path, ids=(4, 9, 70)))
    assert len(data) == 4 and data.counts.tolist() == [3, 1, 0, 2]
    assert data.image_ids.tolist() == [100, 101, 102, 103]
    assert data.sizes.tolist() == [list(size) for size in detection_files.SIZES]
    assert data.category_ids == (4, 9, 70) and data.category_names == detection_files.NAMES
    expected = [
        (y0, x0, y1, x1) for each in detection_files.OBJECTS for _, (x0, y0, x1, y1) in each
    ]
    np.testing.assert_array_equal(data.boxes, expected)
    # Objects stand by image, whatever the order in the file, and keep their ids.
    assert data.object_ids == (1, 2, 3, 11, 31, 32)
    assert data.is_crowd.tolist() == [False, False, True, False, False, False]
    assert data.masks is None


@pytest.mark.parametrize("uncompressed", [False, True])
def test_run_lengths_are_read_exactly(tmp_path, uncompressed):
    path = instance_files.write_coco(tmp_path, uncompressed=uncompressed)
    data = coco_files.read_coco(path, include_masks=True)
    assert not data.mask_problems
    for row, code in enumerate(data.masks):
        expected = instance_files.blobs(row // 3)[row % 3]
        np.testing.assert_array_equal(decode_bitmap(code, *instance_files.SIZE), expected)
    assert data.mask_bytes.tolist() == [
        sum(map(len, data.masks[3 * image : 3 * image + 3])) for image in range(4)
    ]


def test_polygons_and_crowds_are_read(tmp_path):
    def change(content):
        first, second, third = content["annotations"][:3]
        first["segmentation"] = [[2, 2, 2, 6, 6, 6, 6, 2], [50, 50, 50, 60, 60, 60, 60, 50]]
        second["iscrowd"] = 1
        del third["segmentation"]

    data = coco_files.read_coco(instance_files.write_coco(tmp_path, change=change), "", True)
    bitmap = decode_bitmap(data.masks[0], *instance_files.SIZE)
    assert bitmap.sum() == 16 + 100 and bitmap[2:6, 2:6].all() and bitmap[50:60, 50:60].all()
    assert data.is_crowd.tolist()[:3] == [False, True, False]
    assert data.masks[1] and not data.masks[2]
    chosen = data.select([2, 0])
    assert chosen.object_ids == (7, 8, 9, 1, 2, 3)
    assert list(chosen.masks[3:]) == list(data.masks[:3])


def test_two_files_are_one_set(tmp_path):
    paths = [instance_files.write_coco(tmp_path / name, count=2) for name in ("a", "b")]
    data = coco_files.read_coco(paths, include_masks=True)
    assert len(data) == 4 and len(data.masks) == len(data.object_ids) == 12
    assert data.image_ids.tolist() == [1, 2, 3, 4]
    with_boxes = coco_files.read_coco(paths)
    assert with_boxes.masks is None


def test_segmentations_that_make_no_sense_are_named(tmp_path):
    def change(content):
        content["annotations"][1]["segmentation"] = [[1, 2, 3]]
        content["annotations"][5]["segmentation"]["counts"] = "00"

    data = coco_files.read_coco(instance_files.write_coco(tmp_path, change=change), "", True)
    assert len(data.mask_problems) == 2
    assert "annotation 2: a polygon must be" in data.mask_problems[0]
    assert "annotation 6: its run-lengths add up to" in data.mask_problems[1]
    assert data.masks[1] == data.masks[5] == b""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda c: c.pop("annotations"), "expected the lists images, annotations, categories"),
        (lambda c: c["images"].clear(), "no images"),
        (lambda c: c["categories"].clear(), "no categories"),
        (lambda c: c["images"][1].update(id=100), "same id"),
        (lambda c: c["images"][1].pop("file_name"), "images need 'file_name'"),
        (lambda c: c["annotations"][0].update(bbox=[1, 2, 3]), r"annotation 31: bbox must be"),
        (lambda c: c["annotations"][0].pop("bbox"), "annotations need 'bbox'"),
        (lambda c: c["categories"][0].update(id="1"), "different integers"),
    ],
)
def test_what_is_no_coco_file_is_refused(tmp_path, change, text):
    path = detection_files.change_coco(detection_files.write_coco(tmp_path), change)
    with pytest.raises(DataError, match=text):
        coco_files.read_coco(path)


def test_text_that_is_no_json_is_refused(tmp_path):
    path = tmp_path / "train.json"
    path.write_text("{")
    with pytest.raises(DataError, match="not a JSON file"):
        coco_files.read_coco(str(path))


@pytest.mark.parametrize("place", ["images", ".", "train", "../train", "../images/train"])
def test_images_are_found_where_they_usually_are(tmp_path, place):
    names = detection_files.write_images(tmp_path / "annotations" / place)
    path = tmp_path / "annotations" / "instances_train.json"
    path.write_text(json.dumps(detection_files.coco_content(names)))
    data = coco_files.read_coco(str(path))
    assert all(pathlib.Path(each).is_file() for each in data.paths)


def test_sizes_come_from_the_images_where_the_file_has_none(tmp_path):
    def change(content):
        for image in content["images"]:
            del image["height"], image["width"]

    path = detection_files.change_coco(detection_files.write_coco(tmp_path), change)
    data = coco_files.read_coco(path)
    assert data.sizes.tolist() == [list(size) for size in detection_files.SIZES]
