import json
import os

import pytest

from hortus.vision.configs import image_classification as configs
from hortus.vision.data import conversion, shapes
from hortus.vision.dataloaders.errors import DataError


@pytest.fixture
def config(tmp_path):
    shapes.write_folders(tmp_path / "data", num_train=2, num_val=1, size=16)
    task = configs.ImageClassificationTask()
    for split, name in (("train", "train_data"), ("val", "validation_data")):
        path = str(tmp_path / "data" / split)
        task.override({name: {"input_path": path, "file_type": "folder"}})
    task.override({"model": {"num_classes": 4, "input_size": [16, 16, 3]}})
    return task


def test_all_splits_are_written_and_counted(config, tmp_path):
    counts = conversion.convert(config, str(tmp_path / "out"), num_shards=2)
    assert {name: sum(files.values()) for name, files in counts.items()} == {
        "train": 8,
        "validation": 4,
    }
    assert len(counts["train"]) == 2
    written = {name for files in counts.values() for name in files}
    assert written <= set(os.listdir(tmp_path / "out"))


def test_what_is_there_stays_and_messages_name_arguments(config, tmp_path):
    output = tmp_path / "out"
    conversion.convert(config, str(output), ["validation"])
    with pytest.raises(DataError, match="let `force` replace its content") as caught:
        conversion.convert(config, str(output), ["validation"])
    assert "--" not in str(caught.value)
    conversion.convert(config, str(output), ["validation"], force=True)
    (output / "notes.json").write_text(json.dumps("mine"))
    with pytest.raises(DataError, match=r"holds other files .* notes\.json"):
        conversion.convert(config, str(output), ["validation"], force=True)


def test_data_that_is_not_named_is_told():
    config = configs.ImageClassificationTask()
    with pytest.raises(DataError, match=r"no data is named: set task\.train_data\.input_path"):
        conversion.convert(config, "out")
    with pytest.raises(DataError, match=r"task\.validation_data names no data"):
        conversion.data_of(config, "validation")
