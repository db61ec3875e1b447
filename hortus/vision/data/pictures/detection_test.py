import numpy as np
import pytest

from hortus.testing import detection_files as files
from hortus.testing import instance_files
from hortus.vision.configs import maskrcnn, retinanet
from hortus.vision.data import pictures
from hortus.vision.data.pictures import detection
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.visualization.boxes import class_colour


def task(path, size=128, channels=3):
    return retinanet.RetinaNetTask(
        model=retinanet.RetinaNet(
            num_classes=4, input_size=[size, size, channels] if size else [], max_level=5
        ),
        train_data=retinanet.DataConfig(
            input_path=path,
            file_type="coco",
            is_training=False,
            parser=retinanet.Parser(num_channels=channels),
        ),
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_boxes_are_drawn_where_objects_are(tmp_path, channels):
    config = task(files.write_coco(tmp_path), channels=channels)
    drawn = pictures.pictures(config.train_data, config, 3)
    assert [picture.size for picture in drawn] == [(384, 384)] * 3
    second = np.array(drawn[1])
    # The box from x 5, y 5 to x 25, y 35 of 30 x 40 pixels, on its left side.
    scale = 384 / 40
    row, column = int(20 * scale), int(5 * scale)
    near = second[row, column - 3 : column + 4].reshape(-1, 3)
    assert np.min(np.abs(near - np.array(class_colour(3))).sum(axis=1)) < 10
    # The third image has no objects: nothing but grey, and the padding.
    assert len(np.unique(np.array(drawn[2])[:200, :200].reshape(-1, 3), axis=0)) < 3


def test_masks_are_drawn_where_objects_are(tmp_path):
    config = maskrcnn.MaskRCNNTask(
        model=maskrcnn.MaskRCNN(num_classes=4, input_size=[80, 120, 3], min_level=3, max_level=3),
        train_data=maskrcnn.DataConfig(
            input_path=instance_files.write_coco(tmp_path), file_type="coco", dtype="float32"
        ),
    )
    (picture,) = detection.pictures(config.train_data, config, 1)
    drawn = np.array(picture)
    factor = drawn.shape[0] // 80
    middles = drawn[factor // 2 :: factor, factor // 2 :: factor].astype(int)
    plain = np.full((80, 120, 3), 10)
    for mask, colour in zip(instance_files.blobs(0), instance_files.COLOURS, strict=True):
        plain[mask > 0] = colour
    is_painted = np.abs(middles - plain).sum(axis=-1) > 30
    told = instance_files.blobs(0).any(axis=0)
    # Lines of boxes and their names are drawn outside of masks, too.
    assert np.mean(is_painted[told]) > 0.95 and np.mean(is_painted[~told]) < 0.3


def test_a_model_without_a_size_is_an_error(tmp_path):
    config = task(files.write_coco(tmp_path), size=0)
    with pytest.raises(DataError, match="input_size must be"):
        pictures.pictures(config.train_data, config, 1)
