import os
import zipfile

import keras
import pytest

from hortus.core.checkpoints import errors, store
from hortus.core.checkpoints.checkpoint import Checkpoint
from hortus.core.checkpoints.sources import open_source


def layer():
    dense = keras.layers.Dense(2)
    dense.build((None, 3))
    return dense


def save(folder, *steps):
    return [Checkpoint(model=layer()).save(folder / f"ckpt-{step}", step) for step in steps]


def test_a_run_gives_its_newest_whole_checkpoint(tmp_path):
    _, older, newest = save(tmp_path, 1, 2, 3)
    assert open_source(tmp_path).path == newest
    os.truncate(os.path.join(newest, store.WEIGHTS), 20)
    with pytest.warns(errors.CheckpointWarning, match="damaged"):
        assert open_source(tmp_path).path == older


def test_a_run_gives_none_of_another_step_than_its_name_says(tmp_path):
    older, newest = save(tmp_path, 2, 3)
    os.rename(newest, tmp_path / "ckpt-9")
    with pytest.warns(errors.CheckpointWarning, match="misnamed: .* step 9, .* of step 3"):
        assert open_source(tmp_path).path == older


def test_a_damaged_checkpoint_that_is_named_is_an_error(tmp_path):
    _, newest = save(tmp_path, 1, 2)
    os.truncate(os.path.join(newest, store.WEIGHTS), 20)
    with pytest.raises(errors.CorruptCheckpointError, match="ckpt-2"):
        open_source(newest)


def test_only_weights_have_names(tmp_path):
    dense = layer()
    optimizer = keras.optimizers.SGD(0.1)
    path = Checkpoint(model=dense, optimizer=optimizer).save(tmp_path / "a")
    source = open_source(path)
    assert set(source.names) == {"model/kernel", "model/bias"}
    assert source.layers == ("model",)


def test_the_weights_in_a_checkpoint_are_checked_with_its_manifest(tmp_path):
    (path,) = save(tmp_path, 1)
    file = os.path.join(path, store.WEIGHTS)
    with open(file, "rb") as opened:
        whole = opened.read()
    with open(file, "wb") as opened:
        opened.write(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(errors.CorruptCheckpointError, match="was changed"):
        open_source(file)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ckpt-11", r"no checkpoint at .*ckpt-11.*Did you mean ckpt-1"),
        ("nowhere/ckpt-1", r"nowhere does not exist"),
        ("empty", r"The folder holds nothing; expected manifest\.json"),
        ("gs://bucket/ckpt-1", r"not in a local or mounted"),
    ],
)
def test_what_is_no_checkpoint_is_told(tmp_path, name, message):
    save(tmp_path, 1)
    (tmp_path / "empty").mkdir()
    path = name if "://" in name else tmp_path / name
    with pytest.raises(errors.CheckpointError, match=message):
        open_source(path)


@pytest.mark.parametrize(
    ("name", "start", "message"),
    [
        ("model.h5", b"\x89HDF\r\n\x1a\n", r"model\.h5 is an HDF5 file, as Keras writes"),
        ("model.tflite", b"\x1c\0\0\0TFL3", r"is a TensorFlow Lite model \(\.tflite\)"),
        ("model.onnx", b"\x08\x07", r"is an ONNX model"),
        ("saved_model.pb", b"\x08\x01", r"is a TensorFlow SavedModel or frozen graph"),
        ("weights.npy", b"\x93NUMPY", r"is a file of NumPy arrays"),
        ("model.pth", b"\x80\x02}", r"cannot be read as a file of PyTorch"),
        ("model.bin", bytes(8), r"is no safetensors file, or is truncated"),
    ],
)
def test_a_file_of_another_kind_is_told(tmp_path, name, start, message):
    (tmp_path / name).write_bytes(start + bytes(100))
    with pytest.raises(errors.CheckpointError, match=message):
        open_source(tmp_path / name)


def test_a_saved_model_is_told(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    (tmp_path / "variables").mkdir()
    with pytest.raises(errors.CheckpointError, match="is a TensorFlow SavedModel or frozen graph"):
        open_source(tmp_path)


def archive(path, *names):
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, b"")
    return path


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (("config.json", "model.weights.h5"), r"is a model of Keras \(\.keras\)"),
        (("a.npy", "b.npy"), r"is a file of NumPy arrays"),
        (("readme.txt",), r"is a zip archive, but none that PyTorch or Keras has written"),
    ],
)
def test_an_archive_of_another_kind_is_told(tmp_path, members, message):
    with pytest.raises(errors.CheckpointError, match=message):
        open_source(archive(tmp_path / "model", *members))
