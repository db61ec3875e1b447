import pathlib

import pytest
import tensorflow as tf
from PIL import Image

from hortus.testing import instance_files as files
from hortus.vision.configs import maskrcnn
from hortus.vision.data.checks import detection
from hortus.vision.data.records import detection as records
from hortus.vision.ops.segmentations import crosses_itself


def task(path, file_type="coco", **model):
    return maskrcnn.MaskRCNNTask(
        model=maskrcnn.MaskRCNN(
            num_classes=4, input_size=[96, 96, 3], min_level=3, max_level=5, **model
        ),
        train_data=maskrcnn.DataConfig(input_path=path, file_type=file_type, is_training=True),
    )


def found(config, level):
    return [str(each) for each in detection.check(config) if each.level == level]


@pytest.mark.parametrize("kind", ["coco", "voc", "instance_masks"])
def test_sound_masks_have_notes_only(tmp_path, kind):
    write = {
        "coco": files.write_coco,
        "voc": files.write_voc,
        "instance_masks": files.write_instance_masks,
    }[kind]
    findings = list(detection.check(task(write(tmp_path / kind), kind)))
    assert {each.level for each in findings} == {"note"}
    assert "half of the masks cover less than" in "\n".join(map(str, findings))


def annotation(place, **values):
    return lambda content: content["annotations"][place].update(values)


BOW = [[20, 20, 60, 60, 60, 20, 20, 60]]
SQUARE = [[20, 20, 60, 20, 60, 60, 20, 60]]


@pytest.mark.parametrize(
    ("level", "change", "texts"),
    [
        (
            "error",
            annotation(4, segmentation={"size": [9, 9], "counts": "0"}),
            ["masks that cannot be read: 1", "train.json: annotation 5: its run-lengths are of"],
        ),
        (
            "warning",
            annotation(4, segmentation=[]),
            ["without a mask, or with one that has no pixels: 1", "1.png: annotation 5, disc x"],
        ),
        (
            "error",
            annotation(4, bbox=[100, 5, 10, 10]),
            ["masks that lie outside of their boxes: 1", "1.png: annotation 5, disc x 100 to 110"],
        ),
        (
            "warning",
            lambda content: content["annotations"][4].update(
                bbox=[
                    content["annotations"][4]["bbox"][0] + 9,
                    *content["annotations"][4]["bbox"][1:],
                ]
            ),
            ["reach beyond their boxes, and are cut there: 1", "annotation 5"],
        ),
        (
            "warning",
            annotation(3, bbox=[0, 0, 120, 80]),
            ["more than twice as long as their masks: 1", "annotation 4"],
        ),
        (
            "warning",
            annotation(4, area=5000),
            [
                "areas that are not those of the masks: 1",
                "annotation 5",
                "area 5000, but 1092 pixels",
            ],
        ),
        (
            "warning",
            annotation(4, segmentation=BOW, bbox=[20, 20, 40, 40], area=800),
            ["polygons that cross themselves: 1", "train.json: 1.png: annotation 5"],
        ),
    ],
)
def test_faults_are_named_with_file_and_annotation(tmp_path, level, change, texts):
    messages = found(task(files.write_coco(tmp_path, change=change)), level)
    assert len(messages) == 1, messages
    for text in texts:
        assert text in messages[0]


def test_no_masks_at_all_are_an_error_unless_none_are_learnt(tmp_path):
    def drop(content):
        for each in content["annotations"]:
            del each["segmentation"]

    path = files.write_coco(tmp_path, change=drop)
    (message,) = found(task(path), "error")
    assert "no object has a mask" in message and "include_mask=false" in message
    boxes = {"include_mask": False, "mask_head": None, "mask_sampler": None}
    assert not found(task(path, **boxes, mask_roi_aligner=None), "error")


def test_a_mask_file_of_another_size_is_named(tmp_path):
    root = pathlib.Path(files.write_voc(tmp_path / "voc"))
    Image.new("P", (7, 9)).save(root / "SegmentationObject" / "1.png")
    (message,) = found(task(str(root), "voc"), "error")
    assert "masks that cannot be read: 1" in message and "1.png has 7 x 9 pixels" in message


def test_records_are_looked_at_too(tmp_path):
    def change(content):
        content["annotations"][4].update(bbox=[100, 5, 10, 10])
        content["annotations"][7].update(area=5000)

    config = task(files.write_coco(tmp_path, change=change))
    config.train_data.global_batch_size = 2
    with tf.io.TFRecordWriter(str(tmp_path / "records")) as writer:
        for record in records.examples(config.train_data, config):
            writer.write(record)
    config = task(str(tmp_path / "records"), "tfrecord")
    config.train_data.global_batch_size = 2
    (error,) = found(config, "error")
    assert "masks that lie outside of their boxes: 1" in error and "record 1" in error
    (warning,) = found(config, "warning")
    assert "areas that are not those of the masks: 1" in warning and "record 2" in warning


def test_a_polygon_may_touch_itself_but_not_cross():
    assert crosses_itself(BOW[0]) and not crosses_itself(SQUARE[0])
    # Two triangles that meet in a corner, one of which is visited twice.
    assert not crosses_itself([0, 0, 10, 0, 5, 5, 10, 10, 0, 10, 5, 5])
    assert not crosses_itself([0, 0, 1, 1, 2, 0])
    star = [0, 3, 10, 3, 2, 9, 5, 0, 8, 9]
    assert crosses_itself(star)
