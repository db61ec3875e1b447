"""Masks as they are stored, and the checks, records and pictures made from them."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.data import checks, pictures, records
from hortus.vision.data.raw_masks import RawMasks
from hortus.vision.dataloaders.errors import DataError


def png(values, has_palette=False):
    file, picture = io.BytesIO(), Image.fromarray(values.astype(np.uint8))
    if has_palette:
        picture.putpalette(list(range(255, -1, -1)) * 3)
    picture.save(file, "PNG")
    return file.getvalue()


def make_mask():
    mask = np.zeros((12, 16))
    mask[:, 8:], mask[0] = 1, 255
    return mask


@pytest.fixture
def data(tmp_path):
    random = np.random.RandomState(0)
    for split, count in (("train", 4), ("val", 2)):
        for kind in ("images", "masks"):
            (tmp_path / kind / split).mkdir(parents=True)
        for number in range(count):
            image = random.randint(0, 255, (12, 16, 3))
            (tmp_path / f"images/{split}/{number}.png").write_bytes(png(image))
            encoded = png(make_mask(), has_palette=number == 1)
            (tmp_path / f"masks/{split}/{number}.png").write_bytes(encoded)
    (tmp_path / "classes.json").write_text('["dark", "bright"]')
    return tmp_path


def task(data, num_classes=2, **losses):
    config = configs.SemanticSegmentationTask()
    config.override(
        {
            "model": {"num_classes": num_classes, "input_size": [8, 8, 3]},
            "losses": losses,
            "train_data": {"file_type": "masks", "input_path": str(data / "images/train")},
            "validation_data": {"file_type": "masks", "input_path": str(data / "images/val")},
        }
    )
    return config


def found(config):
    return list(checks.check(config))


def faults(config):
    return [finding for finding in found(config) if finding.level != "note"]


def test_sound_data_gives_facts_only(data):
    findings = found(task(data))
    assert checks.worst(findings) == "note"
    text = "\n".join(map(str, findings))
    assert "train_data: 4 images" in text and "validation_data: 2 images" in text
    assert "8.3% of the pixels do not count (255)" in text
    assert "dark     50.0%       4" in text


def test_faults_are_found(data):
    (data / "masks/train/0.png").write_bytes(png(np.zeros((9, 16))))
    (data / "masks/train/2.png").write_bytes(png(np.full((12, 16), 7)))
    (data / "masks/train/3.png").write_bytes(b"?")
    (data / "masks/train/9.png").write_bytes(png(make_mask()))
    (data / "images/val/1.png").write_bytes((data / "images/train/1.png").read_bytes())
    texts = [str(finding) for finding in faults(task(data))]
    for part in (
        "error: train_data: images with masks that cannot be used: 2",
        "the mask has 9 x 16 pixels, the image 12 x 16",
        "must be a PNG file",
        "error: train_data: masks with numbers that are no class: 7. The classes are 0 to 1",
        "warning: train_data: masks without an image: 1",
        "error: images of validation_data that are in train_data too",
    ):
        assert any(part in text for text in texts), (part, texts)


def test_settings_are_checked(data):
    assert any("num_classes=2; it is 0" in each.what for each in faults(task(data, num_classes=0)))
    assert any("names 2 classes" in each.what for each in faults(task(data, num_classes=1)))
    few = faults(task(data, num_classes=3))
    assert {each.level for each in few} == {"warning"}
    assert any("classes that no mask shows: 1" in each.what for each in few)
    config = task(data)
    config.train_data.input_path = config.validation_data.input_path = ""
    (nothing,) = found(config)
    assert "no data is named" in nothing.what
    config.train_data.input_path = str(data / "images/nowhere")
    assert any("no such file" in each.what for each in faults(config))


def test_classes_out_of_balance_get_weights(data):
    mask = np.zeros((12, 16))
    mask[0, 0] = 1
    for number in range(4):
        (data / f"masks/train/{number}.png").write_bytes(png(mask))
    (data / "masks/val/0.png").write_bytes(png(np.full((12, 16), 255)))
    texts = [each.what for each in faults(task(data))]
    assert any("191 times" in text and "class_weights=[0.5, 10.0]" in text for text in texts)
    assert any("none of whose pixels count: 1" in text for text in texts)
    assert any("54.2% of the pixels do not count" in text for text in texts)


def test_records_hold_what_the_folders_held(data, tmp_path):
    config = task(data)
    path = str(tmp_path / "train.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for example in records.examples(config.train_data, config):
            writer.write(example)
    assert records.info(config.train_data, config).class_names == ("dark", "bright")
    again = task(data)
    again.train_data.override({"file_type": "tfrecord", "input_path": path})
    pairs = zip(RawMasks(config.train_data, config), RawMasks(again.train_data, again), strict=True)
    for before, after in pairs:
        np.testing.assert_array_equal(after.mask, before.mask)
        np.testing.assert_array_equal(after.pixels, before.pixels)


def test_what_cannot_be_a_record_is_told_or_left_out(data):
    (data / "masks/train/0.png").write_bytes(png(np.zeros((9, 16))))
    config = task(data)
    with pytest.raises(DataError, match=r"0\.png.*the mask has 9 x 16 pixels.*skip_bad_records"):
        list(records.examples(config.train_data, config))
    config.train_data.skip_bad_records = True
    assert len(list(records.examples(config.train_data, config))) == 3


def test_pictures(data):
    config = task(data)
    drawn = pictures.pictures(config.train_data, config, 3)
    assert len(drawn) == 3 and all(picture.width >= 112 for picture in drawn)
    config.model.num_classes = 0
    with pytest.raises(DataError, match="how many classes"):
        pictures.pictures(config.train_data, config, 1)
