import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.configs import image_classification as configs
from hortus.vision.data.pictures import classification, pictures
from hortus.vision.dataloaders.errors import DataError


@pytest.fixture
def config(tmp_path):
    for name, colour in (("blue", (0, 0, 255)), ("red", (255, 0, 0))):
        (tmp_path / name).mkdir()
        image = np.tile(np.array(colour, np.uint8), [20, 20, 1])
        (tmp_path / name / "0.png").write_bytes(tf.io.encode_png(image).numpy())
    data = {"input_path": str(tmp_path), "file_type": "folder", "global_batch_size": 2}
    return configs.ImageClassificationTask(
        {"model": {"num_classes": 2, "input_size": [16, 16, 3]}, "validation_data": data}
    )


def test_colours_come_back_from_the_normalisation(config):
    blue, red = pictures(config.validation_data, config, 5)
    assert blue.getpixel((3, 3)) == (0, 0, 255) and red.getpixel((3, 3)) == (255, 0, 0)
    # Enlarged for the sake of the text below.
    assert blue.size == (112, 112 + 18)


def test_captions():
    names = ("ant", "bee", "cat")
    caption = classification._caption
    assert caption(np.int32(1), names) == "bee"
    assert caption(np.int32(7), names) == "7"
    assert caption(np.array([1.0, 0.0, 1.0]), names) == "ant, cat"
    assert caption(np.zeros(3), names) == "(none)"
    assert caption(np.array([0.3, 0.68, 0.02]), names) == "bee 68%, ant 30%"


def test_what_is_missing_is_told(config):
    config.override({"model": {"num_classes": 0}})
    with pytest.raises(DataError, match=r"task\.model\.num_classes is 0"):
        pictures(config.validation_data, config, 1)
    config.override({"model": {"num_classes": 2, "input_size": [None, None, 3]}})
    with pytest.raises(DataError, match="need a fixed height and width"):
        pictures(config.validation_data, config, 1)


def test_a_broken_image_is_named(config, tmp_path):
    (tmp_path / "red" / "0.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"red/0\.png: "):
        pictures(config.validation_data, config, 5)
