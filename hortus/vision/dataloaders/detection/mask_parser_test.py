import numpy as np
import pytest
import tensorflow as tf
from pycocotools import mask as oracle

from hortus.testing import instance_files as files
from hortus.vision.configs import common, maskrcnn
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.position_test import check_restores

pytestmark = pytest.mark.filterwarnings("ignore:__array__")  # of pycocotools


def model(**settings):
    return maskrcnn.MaskRCNN(
        num_classes=4, input_size=[96, 96, 3], min_level=3, max_level=5, **settings
    )


def data(path, is_training=False, parser=None, **settings):
    parser = {"max_num_instances": 5, "mask_crop_size": 28} | (parser or {})
    settings = {"file_type": "coco", "dtype": "float32", "seed": 3} | settings
    return maskrcnn.DataConfig(
        input_path=path,
        is_training=is_training,
        global_batch_size=2,
        drop_remainder=False,
        parser=maskrcnn.Parser(**parser),
        **settings,
    )


def batches(params, count, **model_settings):
    reader = detection_input.build_reader(params, model(**model_settings))
    for images, labels in reader.read().take(count):
        yield images.numpy(), tf.nest.map_structure(lambda value: value.numpy(), labels)


def seen_masks(image, boxes, classes, side):
    """What the pixels of the image tell: is the object's colour there?"""
    pixels = image * preprocess.STDDEV_RGB + preprocess.MEAN_RGB
    cells = (np.arange(side) + 0.5) / side
    for (top, left, bottom, right), kind in zip(boxes, classes, strict=True):
        rows = np.floor(top + cells * (bottom - top)).astype(int)
        columns = np.floor(left + cells * (right - left)).astype(int)
        yield pixels[rows][:, columns, kind - 1] > 128


AUGMENTATIONS = {
    "none": {},
    "left to right": {"aug_rand_hflip": True},
    "top to bottom": {"aug_rand_vflip": True},
    "jitter": {"aug_scale_min": 0.5, "aug_scale_max": 2.5},
    "stretch": {"keep_aspect_ratio": False},
    "all": {
        "aug_rand_hflip": True,
        "aug_rand_vflip": True,
        "aug_scale_min": 0.7,
        "aug_scale_max": 2.0,
        "aug_type": common.Augmentation(type="ssd_random_crop"),
    },
}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_masks_are_where_the_image_shows_the_objects(tmp_path, name):
    params = data(files.write_coco(tmp_path), True, AUGMENTATIONS[name])
    agreements = []
    for images, labels in batches(params, 12):
        assert labels["masks"].dtype == np.uint8 and labels["masks"].shape == (2, 5, 28, 28)
        for row in range(2):
            count = int(np.sum(labels["classes"][row] > 0))
            assert not labels["masks"][row, count:].any()
            boxes, classes = labels["boxes"][row, :count], labels["classes"][row, :count]
            seen = seen_masks(images[row], boxes, classes, 28)
            for mask, expected, box in zip(labels["masks"][row], seen, boxes, strict=False):
                if min(box[2] - box[0], box[3] - box[1]) > 8:
                    agreements.append(np.mean(mask == expected))
    # Resized images are smooth at edges, masks are not: a cell or so along the outline.
    assert len(agreements) > 30
    assert np.mean(agreements) > 0.96 and np.min(agreements) > 0.85


def test_evaluation_has_the_exact_masks(tmp_path):
    (_, labels), *_ = batches(data(files.write_coco(tmp_path)), 1)
    truths = labels["groundtruths"]
    assert truths["mask_codes"].dtype == np.uint8
    for row in range(2):
        ends = np.cumsum(truths["mask_lengths"][row])
        assert np.all(truths["mask_lengths"][row, 3:] == 0)
        text = truths["mask_codes"][row].tobytes()
        for number, mask in enumerate(files.blobs(row)):
            begin = ends[number] - truths["mask_lengths"][row, number]
            code = {"size": list(files.SIZE), "counts": text[begin : ends[number]]}
            np.testing.assert_array_equal(oracle.decode(code), mask)
            assert truths["areas"][row, number] == mask.sum()


def test_masks_go_on_after_a_restart_bit_for_bit(tmp_path):
    parser = {**AUGMENTATIONS["all"], "copy_paste": maskrcnn.CopyPaste(probability=1.0)}
    params = data(files.write_coco(tmp_path), True, parser)
    dataset = detection_input.build_dataset(params, model())
    folder = tmp_path / "position"
    folder.mkdir()
    check_restores(lambda: dataset, str(folder), before=2, after=3)


def test_boxes_alone_need_no_masks(tmp_path):
    def drop(content):
        for each in content["annotations"]:
            del each["segmentation"]

    path = files.write_coco(tmp_path, change=drop)
    with pytest.raises(DataError, match=r"none of its 12 objects has a mask.*include_mask=false"):
        next(batches(data(path), 1))
    settings = {"include_mask": False, "mask_head": None, "mask_sampler": None}
    (_, labels), *_ = batches(data(path), 1, **settings, mask_roi_aligner=None)
    assert "masks" not in labels


def test_a_mask_of_another_size_is_named(tmp_path):
    def change(content):
        content["annotations"][4]["segmentation"]["size"] = [10, 10]

    path = files.write_coco(tmp_path, change=change)
    with pytest.raises(DataError, match=r"train.json: annotation 5: .*height and width \[10, 10\]"):
        next(batches(data(path), 1))
    assert len(list(batches(data(path, skip_bad_records=True), 2))) == 2


def test_operations_that_masks_cannot_follow_are_refused(tmp_path):
    augmentation = common.Augmentation(type="randaug")
    params = data(files.write_coco(tmp_path), True, {"aug_type": augmentation})
    with pytest.raises(ValueError, match=r"masks cannot follow.*ShearX.*exclude_ops"):
        next(batches(params, 1))
    moving = ["Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"]
    augmentation.randaug.exclude_ops = moving
    params = data(files.write_coco(tmp_path / "again"), True, {"aug_type": augmentation})
    assert next(batches(params, 1))[1]["masks"].any()


def test_too_many_bytes_of_masks_are_refused(tmp_path):
    params = data(files.write_coco(tmp_path))
    parser = detection_input.build_parser(params, model(), most_mask_bytes=10)
    source = detection_input.build_reader(params, model()).sources[""]
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_mask_bytes=10"):
        parser.parse_fn(False)(source.load({"row": 0}))
