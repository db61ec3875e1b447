import pathlib

import numpy as np
import pytest
import tensorflow as tf

from hortus.testing import detection_files as files
from hortus.vision.configs import retinanet
from hortus.vision.data import records
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.dataloaders.errors import DataError


def task(path, file_type, **settings):
    return retinanet.RetinaNetTask(
        model=retinanet.RetinaNet(num_classes=4, input_size=[64, 64, 3], min_level=3, max_level=5),
        train_data=retinanet.DataConfig(
            input_path=path,
            file_type=file_type,
            global_batch_size=4,
            dtype="float32",
            drop_remainder=False,
            **settings,
        ),
    )


def batch(config):
    dataset = detection_input.build_dataset(config.train_data, config.model)
    return next(iter(dataset))


@pytest.mark.parametrize("kind", ["coco", "voc"])
def test_records_say_what_the_files_said(tmp_path, kind):
    path = (files.write_coco if kind == "coco" else files.write_voc)(tmp_path / kind)
    config = task(path, kind)
    assert records.info(config.train_data, config).class_names == files.NAMES
    written = list(records.examples(config.train_data, config))
    assert len(written) == 4
    features = tf.train.Example.FromString(written[0]).features.feature
    names = features["image/object/class/text"].bytes_list.value
    assert list(names) == [b"ant", b"bee", b"ant"]
    assert features["image/format"].bytes_list.value[0] == b"png"

    with tf.io.TFRecordWriter(str(tmp_path / "records")) as writer:
        for record in written:
            writer.write(record)
    expected = batch(config)
    found = batch(task(str(tmp_path / "records"), "tfrecord"))
    # Here the number of objects is not known before, so that there is more room for them.
    most = expected[1]["groundtruths"]["boxes"].shape[1]
    found[1]["groundtruths"] = {
        key: value[:, :most] if value.shape.rank > 1 else value
        for key, value in found[1]["groundtruths"].items()
    }
    # The graphs differ, and so may the order of two multiplications: the last bit of a float32.
    tf.nest.map_structure(
        lambda ours, files: np.testing.assert_allclose(ours, files, rtol=2e-7), found, expected
    )


def test_a_broken_image_is_named_or_left_out(tmp_path):
    path = files.write_coco(tmp_path)
    image = pathlib.Path(path).parent / "images" / "1.png"
    image.write_bytes(b"no image")
    config = task(path, "coco")
    with pytest.raises(DataError, match=r"1\.png: .*skip_bad_records=true"):
        list(records.examples(config.train_data, config))
    skipping = task(path, "coco", skip_bad_records=True)
    assert len(list(records.examples(skipping.train_data, skipping))) == 3
