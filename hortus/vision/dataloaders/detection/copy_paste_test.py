import numpy as np
import pytest
import tensorflow as tf

from hortus.testing import instance_files as files
from hortus.vision.configs import maskrcnn
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.detection import copy_paste
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.dataloaders.detection.classes import number_classes
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.evaluation.coco_masks import paste

SIZE = 96


def build_parse(path, file_type="coco", max_num_instances=12, **settings):
    """A function from a number to the image and labels of an example, by that seed."""
    parser = maskrcnn.Parser(
        max_num_instances=max_num_instances,
        mask_crop_size=56,
        aug_rand_hflip=True,
        copy_paste=maskrcnn.CopyPaste(**settings),
    )
    params = maskrcnn.DataConfig(
        input_path=path,
        file_type=file_type,
        is_training=True,
        global_batch_size=2,
        dtype="float32",
        parser=parser,
    )
    model = maskrcnn.MaskRCNN(num_classes=4, input_size=[SIZE, SIZE, 3], min_level=3, max_level=5)
    reader = detection_input.build_reader(params, model)
    table, parse = reader.sources[""], reader._parse
    traced = tf.function(lambda row, seed: parse(table.load({"row": row}), seed), autograph=False)

    def example(number):
        image, labels = traced(tf.constant(number % 4), tf.constant([7, number], tf.int64))
        return image.numpy(), {key: value.numpy() for key, value in labels.items()}

    return example


def colours_of(image):
    """The class that is seen at each pixel, 0 for none."""
    pixels = image * preprocess.STDDEV_RGB + preprocess.MEAN_RGB
    return np.where(pixels.max(axis=-1) > 128, pixels.argmax(axis=-1) + 1, 0)


def classes_of(labels):
    """The class that masks tell at each pixel; later objects are on top."""
    told = np.zeros((SIZE, SIZE), int)
    for box, mask, kind in zip(labels["boxes"], labels["masks"], labels["classes"], strict=True):
        if kind > 0:
            told[paste(mask.astype(np.float32), box, SIZE, SIZE, aligned=True)] = kind
    return told


def test_masks_tell_what_the_image_shows(tmp_path):
    example = build_parse(files.write_coco(tmp_path), probability=1.0, object_probability=0.7)
    agreements, counts = [], []
    for number in range(16):
        image, labels = example(number)
        counts.append(int(np.sum(labels["classes"] > 0)))
        agreements.append(np.mean(colours_of(image) == classes_of(labels)))
    assert max(counts) > 3
    # Edges of resized images are smooth: some pixels of an outline.
    assert np.mean(agreements) > 0.97 and np.min(agreements) > 0.93
    # The seed decides, and nothing else.
    first, again, other = (example(number)[1]["masks"] for number in (1, 1, 5))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_nothing_is_pasted_that_has_no_row(tmp_path):
    settings = {"probability": 1.0, "object_probability": 1.0, "max_num_instances": 4}
    example = build_parse(files.write_coco(tmp_path), **settings, min_visible=0.0)
    for number in range(6):
        image, labels = example(number)
        assert np.mean(colours_of(image) == classes_of(labels)) > 0.93


def test_examples_of_several_sets_are_drawn(tmp_path):
    tables = []
    for name, count in (("a", 1), ("b", 3)):
        params = maskrcnn.DataConfig(
            input_path=files.write_coco(tmp_path / name, count=count), file_type="coco"
        )
        (data,) = detection_input.read_sets(params, True).values()
        tables.append(data.as_source(number_classes(data.category_ids, data.category_names)))
    draw = tf.function(detection_input._draw_from(tables), autograph=False)
    found = [draw(tf.constant([0, number], tf.int64)) for number in range(40)]
    sizes = {len(each["image"].numpy()) for each in found}
    ids = [int(each["source_id"]) for each in found]
    # Image 1 is in both sets, so that it is drawn half of the time.
    assert set(ids) == {1, 2, 3} and 10 < ids.count(1) < 30 and len(sizes) > 1


def test_records_cannot_be_picked_from(tmp_path):
    (tmp_path / "records").touch()
    with tf.io.TFRecordWriter(str(tmp_path / "records")) as writer:
        writer.write(tf.train.Example().SerializeToString())
    with pytest.raises(DataError, match="copy_paste needs files of annotations"):
        build_parse(str(tmp_path / "records"), file_type="tfrecord")


def columns(boxes, masks):
    count = len(boxes)
    return {
        "boxes": tf.constant(boxes, tf.float32),
        "masks": tf.constant(masks, tf.uint8),
        "areas": tf.fill([count], 100.0),
        "classes": tf.range(count),
    }


def test_what_is_covered_is_hidden():
    boxes = [[0, 0, 10, 10], [20, 20, 40, 40], [20, 0, 30, 10], [50, 50, 60, 60]]
    masks = np.ones((4, 10, 10), np.uint8)
    masks[3] = 0
    covered = np.zeros((64, 64), bool)
    covered[0:10, 0:5] = True  # half of the first
    covered[20:40, 20:40] = True  # all of the second
    hidden = copy_paste.hide(columns(boxes, masks), tf.constant(covered), 0.2)
    assert hidden["classes"].numpy().tolist() == [0, 2, 3]
    np.testing.assert_allclose(hidden["boxes"], [[0, 5, 10, 10], *boxes[2:]])
    assert hidden["masks"].numpy()[:2].all() and not hidden["masks"].numpy()[2].any()
    np.testing.assert_allclose(hidden["areas"], [50, 100, 100])


def test_a_hole_stays_a_hole():
    covered = np.zeros((20, 20), bool)
    covered[4:8, 2:6] = True
    hidden = copy_paste.hide(
        columns([[0, 0, 10, 10]], np.ones((1, 10, 10))), tf.constant(covered), 0.2
    )
    expected = np.ones((10, 10))
    expected[4:8, 2:6] = 0
    np.testing.assert_array_equal(hidden["masks"][0], expected)
    np.testing.assert_allclose(hidden["boxes"], [[0, 0, 10, 10]])


def test_too_little_to_see_is_dropped():
    covered = np.zeros((20, 20), bool)
    covered[:9] = True
    objects = columns([[0, 0, 10, 10]], np.ones((1, 10, 10)))
    for min_visible, count in ((0.05, 1), (0.15, 0)):
        hidden = copy_paste.hide(objects, tf.constant(covered), min_visible)
        assert len(hidden["boxes"]) == count
