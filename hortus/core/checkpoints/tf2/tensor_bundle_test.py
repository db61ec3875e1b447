import os

import numpy as np
import pytest
import tensorflow as tf

from hortus.core.checkpoints import errors
from hortus.core.checkpoints.tf2.tensor_bundle import TensorBundle

DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "int16"]
DTYPES += ["uint16", "uint32", "uint64", "bool", "complex64"]


def write(prefix, tensors):
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(value) for value in tensors.values()],
    )
    return str(prefix)


@pytest.fixture
def prefix(tmp_path):
    random = np.random.default_rng(0)
    return write(
        tmp_path / "ckpt-1",
        {"a/kernel": random.standard_normal((7, 5)).astype("float32"), "b": np.arange(2000)},
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_read_as_tensorflow_wrote_it(tmp_path, dtype):
    value = tf.cast(tf.constant([[0.0, 1.0, 2.5], [3.0, 1.0, 0.0]]), dtype).numpy()
    tensor = TensorBundle(write(tmp_path / "a", {"x": value})).read("x")
    assert tensor.dtype == value.dtype
    assert tensor.shape == (2, 3)
    assert tensor.tobytes() == value.tobytes()


def test_keys_shapes_and_values(prefix):
    bundle = TensorBundle(prefix)
    assert bundle.keys() == ["a/kernel", "b"]
    assert "b" in bundle and "c" not in bundle and "" not in bundle
    assert bundle.shape("a/kernel") == (7, 5)
    assert bundle.read("b").tolist() == list(range(2000))
    assert TensorBundle(prefix + ".index").keys() == bundle.keys()


def test_scalars_and_empty_tensors(tmp_path):
    path = write(tmp_path / "a", {"scalar": np.float32(2.5), "empty": np.zeros((0, 3), "int32")})
    bundle = TensorBundle(path)
    assert bundle.read("scalar").shape == ()
    assert float(bundle.read("scalar")) == 2.5
    assert bundle.read("empty").shape == (0, 3)


def test_an_index_of_many_blocks(tmp_path):
    names = [f"model/layer_{i // 10}/block_{i}/kernel/{'x' * 60}" for i in range(4000)]
    path = write(tmp_path / "a", {name: np.int32(i) for i, name in enumerate(names)})
    # Blocks have 256 kB. Of keys that begin alike, the beginning is stored once.
    assert os.path.getsize(path + ".index") > 300_000
    bundle = TensorBundle(path)
    assert bundle.keys() == sorted(names)
    for index in (0, 1, 1234, 3999):
        assert int(bundle.read(names[index])) == index


def test_several_data_files(tmp_path):
    parts = [write(tmp_path / f"part{i}", {f"x{i}": np.full(3, i, "float32")}) for i in range(3)]
    whole = str(tmp_path / "whole")
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=whole)
    assert os.path.exists(whole + ".data-00002-of-00003")
    bundle = TensorBundle(whole)
    for i in range(3):
        assert bundle.read(f"x{i}").tolist() == [i] * 3
    os.remove(whole + ".data-00001-of-00003")
    assert bundle.read("x0").tolist() == [0] * 3
    with pytest.raises(errors.CorruptCheckpointError, match="00001-of-00003 is missing"):
        bundle.read("x1")


def test_a_truncated_data_file_is_told(prefix):
    data = prefix + ".data-00000-of-00001"
    os.truncate(data, os.path.getsize(data) - 1)
    with pytest.raises(errors.CorruptCheckpointError, match="is truncated: b is not all in it"):
        TensorBundle(prefix).read("b")


def test_a_changed_data_file_is_told(prefix):
    with open(prefix + ".data-00000-of-00001", "r+b") as file:
        file.seek(3)
        file.write(b"?")
    with pytest.raises(errors.CorruptCheckpointError, match="a/kernel was changed"):
        TensorBundle(prefix).read("a/kernel")
    assert TensorBundle(prefix).read("b").tolist() == list(range(2000))


def test_a_truncated_index_is_told_at_every_length(prefix):
    with open(prefix + ".index", "rb") as file:
        whole = file.read()
    for length in range(len(whole)):
        with open(prefix + ".index", "wb") as file:
            file.write(whole[:length])
        with pytest.raises(errors.CorruptCheckpointError, match="truncated"):
            TensorBundle(prefix).keys()


def test_a_changed_index_is_told(prefix):
    with open(prefix + ".index", "rb") as file:
        whole = file.read()
    for position in range(60):
        changed = bytearray(whole)
        changed[position] ^= 1
        with open(prefix + ".index", "wb") as file:
            file.write(changed)
        with pytest.raises(errors.CheckpointError):
            TensorBundle(prefix).keys()


def test_what_is_not_there_is_told(prefix, tmp_path):
    with pytest.raises(errors.CheckpointError, match="has no tensor nothing"):
        TensorBundle(prefix).read("nothing")
    with pytest.raises(errors.CheckpointError, match=r"nowhere\.index: No such file"):
        TensorBundle(str(tmp_path / "nowhere")).keys()


def test_text_is_no_number(tmp_path):
    bundle = TensorBundle(write(tmp_path / "a", {"text": np.array(b"abc")}))
    assert not bundle.is_numeric("text")
    assert bundle.read_text("text") == b"abc"
    with pytest.raises(errors.CheckpointError, match="text holds no numbers"):
        bundle.read("text")
