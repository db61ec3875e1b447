import logging
import pathlib

import numpy as np
import pytest
from PIL import Image

from hortus.testing import detection_files, instance_files
from hortus.vision.dataloaders.detection import voc_files
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.ops.segmentations import decode_bitmap


def test_columns_say_what_the_files_say(tmp_path):
    data = voc_files.read_voc(detection_files.write_voc(tmp_path / "voc"))
    assert data.counts.tolist() == [3, 1, 0, 2]
    assert data.category_names == detection_files.NAMES and data.category_ids == (1, 2, 3)
    expected = [
        (y0, x0, y1, x1) for each in detection_files.OBJECTS for _, (x0, y0, x1, y1) in each
    ]
    np.testing.assert_array_equal(data.boxes, expected)
    assert data.is_difficult.tolist() == [False, False, True, True, False, True]
    assert data.masks is None


def test_a_list_chooses_images_and_keeps_the_ids(tmp_path):
    root = detection_files.write_voc(tmp_path / "voc", lists={"train": [3, 0]})
    data = voc_files.read_voc(f"{root}/ImageSets/Main/train.txt")
    assert [pathlib.Path(path).name for path in data.paths] == ["3.png", "0.png"]
    assert data.image_ids.tolist() == [4, 1]
    assert data.category_names == detection_files.NAMES


def test_masks_are_those_of_the_palette(tmp_path, caplog):
    root = instance_files.write_voc(tmp_path / "voc")
    with caplog.at_level(logging.INFO):
        data = voc_files.read_voc(root, include_masks=True)
    # The last image has no masks.
    assert len(data) == 3 and "3 of 4 images have masks" in caplog.text
    for row, code in enumerate(data.masks):
        expected = instance_files.blobs(row // 3)[row % 3].copy()
        np.testing.assert_array_equal(decode_bitmap(code, *instance_files.SIZE), expected)
    assert np.all(data.areas == -1)  # the parser counts pixels
    assert len(voc_files.read_voc(root)) == 4


def test_objects_of_a_list_may_lack_masks(tmp_path):
    root = pathlib.Path(instance_files.write_voc(tmp_path / "voc"))
    (root / "ImageSets" / "Segmentation").mkdir(parents=True)
    chosen = root / "ImageSets" / "Segmentation" / "train.txt"
    chosen.write_text("3\n1\n")
    data = voc_files.read_voc(str(chosen), include_masks=True)
    assert [bool(code) for code in data.masks] == [False] * 3 + [True] * 3


def test_a_mask_of_another_size_is_named(tmp_path):
    root = pathlib.Path(instance_files.write_voc(tmp_path / "voc"))
    Image.new("P", (7, 9)).save(root / "SegmentationObject" / "1.png")
    data = voc_files.read_voc(str(root), include_masks=True)
    assert len(data.mask_problems) == 1
    assert "1.png has 7 x 9 pixels" in data.mask_problems[0]


def test_without_masks_there_is_nothing_to_read(tmp_path):
    root = detection_files.write_voc(tmp_path / "voc")
    with pytest.raises(DataError, match="no folder SegmentationObject"):
        voc_files.read_voc(root, include_masks=True)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("0.xml", "<annotation>", "cannot be read as XML"),
        ("0.xml", "<annotation><object><name>a</name></object></annotation>", "expected <size>"),
    ],
)
def test_broken_annotations_are_named(tmp_path, name, content, text):
    root = pathlib.Path(detection_files.write_voc(tmp_path / "voc"))
    (root / "Annotations" / name).write_text(content)
    with pytest.raises(DataError, match=text) as caught:
        voc_files.read_voc(str(root))
    assert name in str(caught.value)


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="expected a Pascal VOC folder"):
        voc_files.read_voc(str(tmp_path))
