import pytest

from hortus.vision.dataloaders.errors import DataError
from hortus.vision.serving.run_config import read_config


def test_an_exported_model_of_another_program_is_named(tmp_path):
    (tmp_path / "model.tflite").write_bytes(b"\x1c\0\0\0TFL3" + bytes(20))
    with pytest.raises(DataError, match=r"is a TensorFlow Lite model \(\.tflite\), and no run"):
        read_config(tmp_path / "model.tflite")
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(DataError, match="is a TensorFlow SavedModel or frozen graph, and no run"):
        read_config(tmp_path)


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(DataError, match="nowhere is not there: expected the model_dir"):
        read_config(tmp_path / "nowhere")
