import json
import logging
import os
import pathlib
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from hortus.testing import detection_files as files
from hortus.vision.configs import common, retinanet
from hortus.vision.dataloaders.detection import checks as detection_checks
from hortus.vision.dataloaders.detection import decoder as detection_decoder
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.dataloaders.detection.classes import COCO_IDS
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.position_test import check_restores


def model(num_classes=4, size=64, max_level=5):
    return retinanet.RetinaNet(
        num_classes=num_classes, input_size=[size, size, 3], max_level=max_level, min_level=3
    )


def data(path, file_type="coco", is_training=False, parser=None, **settings):
    settings = {"dtype": "float32", "seed": 1, "drop_remainder": False} | settings
    return retinanet.DataConfig(
        input_path=path,
        file_type=file_type,
        is_training=is_training,
        global_batch_size=2,
        parser=retinanet.Parser(max_num_instances=5, **(parser or {})),
        **settings,
    )


def column(reader, name):
    value = reader.sources[""].columns[name]
    return value if isinstance(value, tf.RaggedTensor) else value.numpy()


def read(params, batches=2):
    reader = detection_input.build_reader(params, model())
    parts = [
        tf.nest.map_structure(lambda value: value.numpy(), batch)
        for batch in reader.read().take(batches)
    ]
    images, labels = tf.nest.map_structure(lambda *values: np.concatenate(values), *parts)
    return images, labels, reader


def objects_of(labels, row, key="boxes"):
    count = int(np.sum(labels["classes"][row] > 0))
    return labels[key][row, :count]


@pytest.fixture
def coco(tmp_path):
    return files.write_coco(tmp_path)


# ---- what batches hold ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["coco", "voc", "tfrecord"])
def test_all_kinds_of_files_give_the_same(tmp_path, kind):
    if kind == "coco":
        path = files.write_coco(tmp_path)
    elif kind == "voc":
        path = files.write_voc(tmp_path / "voc")
    else:
        path = files.write_records(tmp_path / "records")
    keep_all = {"skip_crowd_during_training": False, "skip_difficult_during_training": False}
    images, labels, _ = read(data(path, kind, parser=keep_all, cache=kind == "coco"))
    assert images.shape == (4, 64, 64, 3)
    truths = labels["groundtruths"]
    for row, objects in enumerate(files.OBJECTS):
        height, width = files.SIZES[row]
        # Sides are whole pixels after resizing.
        scale = np.round(np.array([height, width]) * 64 / max(height, width)) / [height, width]
        boxes = np.array([(y0, x0, y1, x1) for _, (x0, y0, x1, y1) in objects]).reshape(-1, 4)
        count = len(objects)
        # float32 shares of the image size, and back: a few units of 1e-6 of a pixel.
        np.testing.assert_allclose(truths["boxes"][row, :count], boxes, atol=1e-4)
        np.testing.assert_allclose(objects_of(labels, row), boxes * np.tile(scale, 2), atol=1e-4)
        np.testing.assert_array_equal(truths["classes"][row, :count], [kind for kind, _ in objects])
        assert np.all(truths["classes"][row, count:] == -1)
        assert np.all(labels["boxes"][row, count:] == -1)
        assert truths["num_detections"][row] == count
        assert (truths["height"][row], truths["width"][row]) == (height, width)
        np.testing.assert_allclose(labels["image_info"][row, 0], (height, width))
        np.testing.assert_allclose(labels["image_info"][row, 1], (64, 64))
        sides = boxes[:, 2:] - boxes[:, :2]
        areas = sides[:, 0] * sides[:, 1] / (2 if kind == "coco" else 1)
        np.testing.assert_allclose(truths["areas"][row, :count], areas, rtol=1e-5)
    assert labels["is_crowd"].dtype == bool
    assert truths["is_crowds"].sum() == (kind == "coco")
    assert truths["is_difficults"].sum() == (3 if kind == "voc" else 0)
    assert list(truths["source_id"]) == ([1, 2, 3, 4] if kind == "voc" else [100, 101, 102, 103])


def test_boxes_are_where_the_objects_are_after_all_augmentations(coco):
    parser = {
        "aug_rand_hflip": True,
        "aug_scale_min": 0.5,
        "aug_scale_max": 2.0,
        "aug_type": common.Augmentation(type="ssd_random_crop"),
    }
    images, labels, _ = read(data(coco, is_training=True, parser=parser), batches=30)
    checked = 0
    for row, image in enumerate(images):
        for (y0, x0, y1, x1), kind in zip(
            objects_of(labels, row), objects_of(labels, row, "classes"), strict=True
        ):
            if min(y1 - y0, x1 - x0) < 8:
                continue
            y, x = int((y0 + y1) / 2), int((x0 + x1) / 2)
            # In the middle of a box, the channel of its class is bright: above the mean.
            assert image[y, x, kind - 1] > 0.5, (row, y, x)
            checked += 1
    assert checked > 40


def test_the_same_seed_gives_the_same_batches_and_the_position_can_be_saved(coco, tmp_path):
    parser = {
        "aug_rand_hflip": True,
        "aug_scale_min": 0.5,
        "aug_scale_max": 2.0,
        "aug_rand_jpeg": common.RandJpegQuality(),
    }
    params = data(coco, is_training=True, parser=parser)
    reader = detection_input.build_reader(params, model())
    dataset = reader.read()
    first = next(iter(dataset))
    tf.nest.map_structure(np.testing.assert_array_equal, first, next(iter(dataset)))
    folder = tmp_path / "position"
    folder.mkdir()
    check_restores(lambda: dataset, str(folder), before=3, after=4)
    assert sum(os.path.getsize(path) for path in folder.iterdir()) < 200


def test_crowds_and_difficult_objects_are_left_out_of_training_only(tmp_path):
    coco, voc = files.write_coco(tmp_path / "coco"), files.write_voc(tmp_path / "voc")
    for path, kind, counts in ((coco, "coco", [2, 1, 0, 2]), (voc, "voc", [2, 0, 0, 1])):
        _, labels, _ = read(data(path, kind))
        assert np.sum(labels["classes"] > 0, axis=1).tolist() == counts
        assert labels["groundtruths"]["num_detections"].tolist() == [3, 1, 0, 2]


def test_boxes_are_cut_at_the_border_of_the_image_and_dropped_when_empty(coco):
    def change(content):
        by_id = {each["id"]: each for each in content["annotations"]}
        # In the last image, which is padded below its 36 rows, and in the first one.
        by_id[31]["bbox"] = [-5, -5, 30, 90]
        by_id[1]["bbox"] = [40, 3, 10, 10]

    files.change_coco(coco, change)
    _, labels, _ = read(data(coco))
    last = objects_of(labels, 3)
    np.testing.assert_allclose(last[0], [0, 0, 36, 25 * 64 / 36], rtol=1e-5)
    truths = labels["groundtruths"]["boxes"]
    np.testing.assert_allclose(truths[3, 0], [-5, -5, 85, 25], rtol=1e-5)
    # The other one is outside of its image: nothing to learn, but still asked for.
    assert objects_of(labels, 0, "classes").tolist() == [2]
    np.testing.assert_allclose(truths[0, 0], [3, 40, 13, 50], rtol=1e-5)


def test_objects_beyond_the_maximum_are_told_and_still_evaluated(coco, caplog):
    few = {"max_num_instances": 1, "skip_crowd_during_training": False}
    params = data(coco, parser=None)
    params.parser.override(few)
    with caplog.at_level(logging.WARNING):
        _, labels = detection_input.build_dataset(params, model()).element_spec
        assert labels["boxes"].shape == (None, 1, 4)
        assert labels["groundtruths"]["boxes"].shape == (None, 3, 4)
        assert "max_num_instances" not in caplog.text
        params.is_training = True
        detection_input.build_reader(params, model())
    assert "2 images have more than 1 objects, up to 3; 3 objects are left out" in caplog.text


def test_grey_images_and_stretched_ones(coco):
    params = data(coco, parser={"num_channels": 1, "keep_aspect_ratio": False, "pad": False})
    with pytest.raises(DataError, match=r"num_channels is 1, but task.model.input_size has 3"):
        read(params)
    grey = model()
    grey.input_size = [64, 64, 1]
    images, labels = next(iter(detection_input.build_dataset(params, grey)))
    assert images.shape == (2, 64, 64, 1)
    np.testing.assert_allclose(labels["image_info"][0, 2], [64 / 24, 64 / 32])
    params.override({"is_training": True, "parser": {"aug_type": {"type": "randaug"}}})
    with pytest.raises(DataError, match="aug_type randaug is for images of 3 channels, not 1"):
        detection_input.build_dataset(params, grey)


def test_images_are_padded_to_the_stride_of_the_coarsest_level(coco):
    reader = detection_input.build_reader(data(coco), model(size=48, max_level=5))
    images, labels = next(iter(reader.read()))
    assert images.shape == (2, 64, 64, 3)
    np.testing.assert_allclose(labels["image_info"][0, 1], [48, 48])
    assert np.all(images.numpy()[:, 48:] == 0)


def test_attributes_are_read_from_records(tmp_path):
    path = files.write_records(
        tmp_path / "records",
        image__object__attribute__pose=lambda _, number: list(range(len(files.OBJECTS[number]))),
    )
    params = data(path, "tfrecord")
    params.decoder.simple_decoder.attribute_names = ["pose"]
    _, labels, _ = read(params)
    np.testing.assert_array_equal(labels["attributes"]["pose"][0, :, 0], [0, 1, 2, -1, -1])


def test_records_with_class_names_are_read_by_a_label_map(tmp_path):
    path = files.write_records(tmp_path / "records", image__object__class__label=lambda *_: [])
    label_map = tmp_path / "labels.csv"
    label_map.write_text("bee,1\ncat,2\nant,3\n")
    params = data(path, "tfrecord")
    params.decoder = common.DataDecoder(
        type="label_map_decoder",
        label_map_decoder=common.TfExampleDecoderLabelMap(label_map=str(label_map)),
    )
    _, labels, _ = read(params)
    assert labels["groundtruths"]["classes"][0].tolist() == [3, 1, 3, -1, -1]
    label_map.write_text("bee,1\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"a class is not in .*labels.csv"):
        read(params)
    label_map.write_text("bee\n")
    with pytest.raises(DataError, match="class name,number"):
        read(params)


def test_source_ids_can_be_made_of_the_image(tmp_path):
    params = data(files.write_records(tmp_path / "records"), "tfrecord")
    params.decoder.simple_decoder.regenerate_source_id = True
    ids = read(params)[1]["source_id"]
    assert len(set(ids.tolist())) == 4
    assert ids.min() > 1000


# ---- TensorFlow Datasets --------------------------------------------------------------------


def test_features_of_tensorflow_datasets_are_brought_into_shape():
    features = {
        "image": tf.constant(b""),
        "image/id": tf.constant(7, tf.int64),
        "objects": {
            "bbox": tf.constant([[0.1, 0.2, 0.3, 0.4]]),
            "label": tf.constant([79], tf.int64),
            "is_crowd": tf.constant([True]),
            "area": tf.constant([12], tf.int64),
        },
    }
    decoded = detection_decoder.tfds_decoder("coco/2017", 91)(features)
    assert decoded["groundtruth_classes"].numpy().tolist() == [90]
    assert decoded["groundtruth_area"].numpy().tolist() == [12.0]
    assert decoded["groundtruth_is_crowd"].numpy().tolist() == [True]
    assert decoded["source_id"].numpy() == 7
    assert detection_decoder.tfds_decoder("coco/2017", 81)(features)[
        "groundtruth_classes"
    ].numpy().tolist() == [80]
    voc = {**features, "objects": {**features["objects"], "is_difficult": tf.constant([True])}}
    del voc["objects"]["area"], voc["image/id"]
    decoded = detection_decoder.tfds_decoder("voc/2012", 21)(voc)
    assert decoded["groundtruth_area"].numpy().tolist() == [-1.0]
    assert decoded["groundtruth_is_difficult"].numpy().tolist() == [True]
    assert decoded["source_id"].numpy() == -1


class _CocoFeatures(dict):
    """The part of the interface that is used; the real package is not needed here."""

    def deserialize_example(self, record, decoders=None):
        assert set(decoders) == {"image"}
        example = detection_decoder.TfExampleDecoder().decode(record)
        return {
            "image": example["image"],
            "image/id": example["source_id"],
            "objects": {
                "bbox": example["groundtruth_boxes"],
                "label": example["groundtruth_classes"] + 10,
                "is_crowd": example["groundtruth_is_crowd"],
                "area": tf.ones_like(example["groundtruth_classes"]),
            },
        }


def test_a_set_of_tensorflow_datasets_is_read(tmp_path, monkeypatch):
    path = files.write_records(tmp_path / "records")
    part = types.SimpleNamespace(filename=path, skip=1, take=3)
    split = types.SimpleNamespace(file_instructions=[part], num_examples=3)
    label = types.SimpleNamespace(names=[f"n{number}" for number in range(80)])
    features = _CocoFeatures(objects=types.SimpleNamespace(feature={"label": label}), image=None)
    info = types.SimpleNamespace(features=features, splits={"validation": split})
    module = types.ModuleType("tensorflow_datasets")
    module.builder = lambda name, data_dir: types.SimpleNamespace(info=info)
    module.decode = types.SimpleNamespace(SkipDecoding=object)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", module)

    params = data("", "tfrecord")
    params.override({"tfds_name": "coco/2017", "tfds_split": "validation"})
    reader = detection_input.build_reader(params, model(91))
    # Label 11 is the twelfth category, whose id is 13; there is none of id 12.
    assert reader.info.class_names[11:13] == ("unused 12", "n11")
    _, labels = next(iter(reader.read()))
    assert labels["groundtruths"]["classes"][0, 0] == COCO_IDS[13]
    assert labels["groundtruths"]["source_id"].numpy().tolist() == [101, 102]
    with pytest.raises(DataError, match="coco/2017 has 80 classes, but the model has 3"):
        detection_input.build_reader(params, model(4))


def test_coco_has_80_categories_below_91():
    assert len(set(COCO_IDS)) == 80
    assert set(range(1, 91)) - set(COCO_IDS) == {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}


# ---- classes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "num_classes", "numbers", "names"),
    [
        ((1, 2, 3), 4, [1, 2, 3], files.NAMES),
        ((7, 8, 70), 4, [1, 2, 3], files.NAMES),
        ((0, 1, 2), 4, [1, 2, 3], files.NAMES),
        ((30, 20, 10), 4, [3, 2, 1], files.NAMES[::-1]),
        ((1, 2, 5), 6, [1, 2, 5], ("ant", "bee", "unused 3", "unused 4", "cat")),
        ((1, 2, 5), 0, [1, 2, 3], files.NAMES),
    ],
)
def test_categories_are_numbered(tmp_path, ids, num_classes, numbers, names):
    path = files.write_coco(tmp_path, ids=ids)
    reader = detection_input.build_reader(data(path), model(num_classes))
    found = column(reader, "groundtruth_classes").to_list()
    assert found[0] == [numbers[0], numbers[1], numbers[0]]
    assert found[1] == [numbers[2]]
    assert reader.info.class_names == names
    counts = dict(zip(names, reader.info.examples_per_class, strict=True))
    assert [counts[name] for name in files.NAMES] == [2, 2, 2]


def test_other_data_gets_the_numbers_of_the_model_by_name(tmp_path):
    path = files.write_coco(tmp_path, ids=(9, 8, 7))
    reader = detection_input.build_reader(data(path), model(), files.NAMES)
    assert column(reader, "groundtruth_classes").to_list()[0] == [1, 2, 1]
    assert reader.info.class_names == files.NAMES
    with pytest.raises(
        DataError, match="the categories cat are not among the classes of the model"
    ):
        detection_input.build_reader(data(path), model(), ("ant", "bee", "dog"))


def test_classes_of_training_are_found_for_validation(tmp_path):
    train = data(files.write_coco(tmp_path / "a", ids=(9, 8, 7)), is_training=True)
    task = retinanet.RetinaNetTask(
        model=model(), train_data=train, validation_data=data("val.json")
    )
    assert detection_input.names_of_training(task.validation_data, task) == files.NAMES[::-1]
    assert detection_input.names_of_training(train, task) == ()


def test_sets_can_be_mixed_or_read_as_one(tmp_path):
    first, second = (files.write_coco(tmp_path / name) for name in "ab")
    joined = detection_input.build_reader(data(f"{first},{second}"), model())
    assert joined.info.num_examples == 8
    assert column(joined, "source_id").tolist() == list(range(1, 9))
    mixed = data("", is_training=True)
    mixed.override({"input_path": {"a": first, "b": second}, "weights": {"a": 1.0, "b": 0.0}})
    assert len(detection_input.build_reader(mixed, model()).sources) == 2
    # In a mix, categories are the same by name.
    files.write_coco(tmp_path / "b", ids=(9, 2, 1))
    sources = detection_input.build_reader(mixed, model()).sources
    classes = [sources[name].columns["groundtruth_classes"].to_list() for name in "ab"]
    assert classes[0] == classes[1]
    with pytest.raises(DataError, match=r"its categories .* are not those of"):
        detection_input.build_reader(data(f"{first},{second}"), model())


# ---- what would end in a precision of 0 -----------------------------------------------------


def scale_boxes(factor):
    def change(content):
        for annotation in content["annotations"]:
            annotation["bbox"] = [value * factor for value in annotation["bbox"]]

    return change


def corners(content):
    for annotation in content["annotations"]:
        x, y, w, h = annotation["bbox"]
        annotation["bbox"] = [x + 8, y + 8, x + w + 8, y + h + 8]


def set_size(**sides):
    return lambda content: content["images"][1].update(sides)


FAULTS = {
    "normalised boxes": (scale_boxes(0.01), "shares of the image size, where pixels"),
    "corners": (corners, r"reach beyond their image.*\[x, y, width, height\], not two corners"),
    "no objects": (lambda c: c.update(annotations=[]), "none of its 4 images has an object"),
    "no images": (lambda c: c.update(images=[]), "there are no images"),
    "wrong size": (
        set_size(width=300, height=400),
        "1.png has 30 x 40 pixels .* says 300 x 400: its boxes may not fit$",
    ),
    "on its side": (set_size(width=40, height=30), "stored on its side"),
    "unknown category": (
        lambda c: c["annotations"][0].update(category_id=77),
        r"1 of 6 objects have a category_id that is not among its categories \(1, 2, 3\)",
    ),
    "missing image": (
        lambda c: c["images"][3].update(file_name="3.jpg"),
        "1 of 4 images are not there, such as .*3.jpg. Did you mean .*3.png",
    ),
    "same image id": (lambda c: c["images"][1].update(id=100), "two images have the same id"),
    "same category id": (lambda c: c["categories"][1].update(id=1), "must be different integers"),
    "no categories": (lambda c: c.update(categories=[]), "there are no categories"),
    "broken box": (
        lambda c: c["annotations"][1].update(bbox=[1, 2, 3]),
        r"annotation 11: bbox must be \[x, y, width, height\] in pixels, got \[1, 2, 3\]",
    ),
    "no box": (lambda c: c["annotations"][1].pop("bbox"), "annotations need 'bbox'"),
    "no file name": (lambda c: c["images"][1].pop("file_name"), "images need 'file_name'"),
    "another format": (lambda c: c.pop("annotations"), "not a COCO annotation file"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told_before_training(coco, name):
    change, message = FAULTS[name]
    files.change_coco(coco, change)
    with pytest.raises(DataError, match=message):
        detection_input.build_reader(data(coco), model())


def test_a_model_with_too_few_or_too_many_classes_is_told(coco, caplog):
    with pytest.raises(DataError, match=r"3 categories \(ant, bee, cat\).*num_classes=4"):
        detection_input.build_reader(data(coco), model(3))
    with caplog.at_level(logging.WARNING):
        detection_input.build_reader(data(coco), model(91))
    assert "set task.model.num_classes=4" in caplog.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["annotations"].append({**c["annotations"][0], "image_id": 5}), "no image"),
        (lambda c: c["annotations"][0].update(bbox=[3, 3, 0, 4]), "1 of 6 boxes have no area"),
        (lambda c: c["annotations"][0].update(bbox=[3, 3, 90, 4]), "1 of 6 boxes reach beyond"),
    ],
)
def test_smaller_faults_are_warnings(coco, caplog, change, message):
    files.change_coco(coco, change)
    with caplog.at_level(logging.WARNING):
        detection_input.build_reader(data(coco), model())
    assert message in caplog.text


def test_images_that_are_not_evaluated_are_told(coco, caplog):
    files.change_coco(coco, lambda content: content["images"].pop(2))
    with caplog.at_level(logging.INFO):
        detection_input.build_reader(data(coco, drop_remainder=True), model())
    assert "1 of 3 images are not evaluated" in caplog.text


def test_images_without_objects_are_kept_and_counted(coco, caplog):
    with caplog.at_level(logging.INFO):
        reader = detection_input.build_reader(data(coco), model())
    assert "1 of 4 images have no objects; they are kept" in caplog.text
    assert reader.info.num_examples == 4


def test_missing_and_broken_images_can_be_skipped(coco):
    folder = pathlib.Path(coco).parent / "images"
    (folder / "0.png").unlink()
    (folder / "1.png").write_bytes(b"no image")
    _, labels, reader = read(data(coco, skip_bad_records=True))
    assert labels["source_id"].tolist() == [102, 103]
    assert reader.bad_records.count == 1


def test_an_image_of_another_size_is_named_while_reading(coco, monkeypatch):
    monkeypatch.setattr(detection_checks, "_check_sizes", lambda data: None)
    files.change_coco(coco, set_size(width=300, height=400))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"1\.png: .*height and width of the"):
        read(data(coco))


def test_sizes_are_read_from_images_where_the_file_does_not_tell(coco):
    files.change_coco(coco, lambda content: [each.pop("width") for each in content["images"]])
    reader = detection_input.build_reader(data(coco), model())
    assert column(reader, "width").tolist() == [width for _, width in files.SIZES]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"image__object__class__label": lambda old, _: [one + 3 for one in old]},
            "classes from 4 to 6.*from 1 to 3: set task.model.num_classes=7",
        ),
        (
            {"image__object__class__label": lambda old, _: [one - 1 for one in old]},
            "0 is the background",
        ),
    ],
)
def test_classes_of_records_that_the_model_lacks_are_told(tmp_path, change, message):
    path = files.write_records(tmp_path / "records", **change)
    with pytest.raises(DataError, match=message):
        detection_input.build_reader(data(path, "tfrecord"), model())


def test_pixels_in_records_are_told(tmp_path):
    path = files.write_records(
        tmp_path / "records", image__object__bbox__xmax=lambda old, _: [30.0 for _ in old]
    )
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"records, record 0: .*look like pixel"
    ):
        read(data(path, "tfrecord"))


def test_a_file_type_of_another_task_is_told(coco):
    with pytest.raises(DataError, match="'folder' is not for detection; expected one of tfrecord"):
        detection_input.build_reader(data(coco, "folder"), model())


# ---- where files are ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("json_path", "images"),
    [
        ("train.json", "images"),
        ("train.json", "."),
        ("annotations/instances_train2017.json", "train2017"),
        ("annotations/train.json", "images"),
        ("annotations/train.json", "images/train"),
    ],
)
def test_images_are_found_around_the_file(tmp_path, json_path, images):
    names = files.write_images(tmp_path / images)
    (tmp_path / json_path).parent.mkdir(exist_ok=True)
    (tmp_path / json_path).write_text(json.dumps(files.coco_content(names)))
    reader = detection_input.build_reader(data(str(tmp_path / json_path)), model())
    assert os.path.samefile(column(reader, "image")[0], tmp_path / images / names[0])


def test_images_can_be_elsewhere(tmp_path):
    path = files.write_coco(tmp_path)
    (tmp_path / "images").rename(tmp_path / "pictures")
    with pytest.raises(DataError, match=r"its images, such as 0.png, are in none of .*image_dir"):
        detection_input.build_reader(data(path), model())
    elsewhere = data(path, image_dir=str(tmp_path / "pictures"))
    assert detection_input.build_reader(elsewhere, model()).info.num_examples == 4


def test_a_list_of_a_voc_folder_chooses_images_and_keeps_the_classes(tmp_path):
    root = files.write_voc(tmp_path / "voc", {"train": [0, 2], "val": [1]})
    path = f"{root}/ImageSets/Main/train.txt"
    reader = detection_input.build_reader(data(path, "voc"), model())
    assert column(reader, "source_id").tolist() == [1, 3]
    # `cat` is in the other list alone.
    assert reader.info.class_names == files.NAMES


def test_a_folder_that_is_not_voc_is_told(tmp_path):
    with pytest.raises(DataError, match="expected a Pascal VOC folder with Annotations"):
        detection_input.build_reader(data(str(tmp_path), "voc"), model())
    root = files.write_voc(tmp_path / "voc")
    (tmp_path / "voc" / "Annotations" / "1.xml").write_text("<annotation><object>")
    with pytest.raises(DataError, match=r"1\.xml: cannot be read as XML"):
        detection_input.build_reader(data(root, "voc"), model())
    text = "<annotation><object><name>ant</name></object></annotation>"
    (tmp_path / "voc" / "Annotations" / "1.xml").write_text(text)
    with pytest.raises(DataError, match=r"1\.xml: expected <size>.*<bndbox>"):
        detection_input.build_reader(data(root, "voc"), model())
