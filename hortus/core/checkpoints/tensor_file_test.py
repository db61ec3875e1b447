import keras  # noqa: F401  (teaches NumPy bfloat16 and float8)
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from hortus.core.checkpoints import atomic_folder, errors, tensor_file

PLAIN = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
PLAIN += ["float16", "float32", "float64"]
EXTRA = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64"]


def some(dtype, shape=(2, 3)):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", PLAIN + EXTRA)
def test_every_dtype_survives(tmp_path, dtype):
    path = str(tmp_path / "a")
    tensor_file.write_tensors(path, {"x": some(dtype)})
    tensors, metadata = tensor_file.read_tensors(path)
    assert same(tensors["x"], some(dtype))
    assert metadata == {}


def test_shapes_and_layouts_survive(tmp_path):
    path = str(tmp_path / "a")
    tensors = {
        "scalar": np.array(3.5),
        "empty": np.zeros((0, 4), "float32"),
        "transposed": some("float32").T,
        "strided": some("int16", (4, 6))[::2, ::3],
        "odd bytes": some("uint8", (3,)),
        "nested/näme": some("float64"),
    }
    tensor_file.write_tensors(path, tensors, {"format": "hortus"})
    read, metadata = tensor_file.read_tensors(path)
    assert metadata == {"format": "hortus"}
    assert set(read) == set(tensors)
    for name, tensor in tensors.items():
        assert same(read[name], np.ascontiguousarray(tensor).reshape(tensor.shape))


def test_the_safetensors_package_reads_what_is_written(tmp_path):
    path = str(tmp_path / "a.safetensors")
    tensors = {dtype: some(dtype) for dtype in PLAIN}
    tensor_file.write_tensors(path, tensors, {"a": "b"})
    for name, tensor in safetensors.numpy.load_file(path).items():
        assert same(tensor, tensors[name])
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata() == {"a": "b"}


def test_bfloat16_is_stored_as_the_format_says(tmp_path):
    path = str(tmp_path / "a.safetensors")
    tensor_file.write_tensors(path, {"x": some("bfloat16")})
    with safetensors.safe_open(path, "numpy") as file:
        assert file.get_slice("x").get_dtype() == "BF16"


def test_what_the_safetensors_package_writes_is_read(tmp_path):
    path = str(tmp_path / "a.safetensors")
    tensors = {dtype: some(dtype) for dtype in PLAIN}
    safetensors.numpy.save_file(tensors, path, {"a": "b"})
    read, metadata = tensor_file.read_tensors(path)
    assert metadata == {"a": "b"}
    assert all(same(read[name], tensor) for name, tensor in tensors.items())


def test_size_and_checksum_are_those_of_the_file(tmp_path):
    path = str(tmp_path / "a")
    written = tensor_file.write_tensors(path, {"x": some("float32")})
    assert written == atomic_folder.checksum_file(path)
    tensor_file.read_tensors(path, *written)


def test_the_same_content_gives_the_same_bytes(tmp_path):
    tensors = {"b": some("float32"), "a": some("int64"), "c": some("uint8")}
    first = tensor_file.write_tensors(str(tmp_path / "a"), tensors)
    second = tensor_file.write_tensors(str(tmp_path / "b"), dict(reversed(tensors.items())))
    assert first == second


def test_a_truncated_file_is_an_error_at_every_length(tmp_path):
    path = tmp_path / "a"
    size, crc = tensor_file.write_tensors(str(path), {"x": some("float32"), "y": some("int8")})
    whole = path.read_bytes()
    for length in range(size):
        path.write_bytes(whole[:length])
        with pytest.raises(errors.CorruptCheckpointError, match=str(path)):
            tensor_file.read_tensors(str(path))
        with pytest.raises(errors.CorruptCheckpointError, match=f"instead of {size}"):
            tensor_file.read_tensors(str(path), size, crc)


def test_a_changed_byte_is_found_by_the_checksum(tmp_path):
    path = tmp_path / "a"
    size, crc = tensor_file.write_tensors(str(path), {"x": some("float32")})
    whole = path.read_bytes()
    for position in range(size):
        changed = bytearray(whole)
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises(errors.CorruptCheckpointError, match="was changed"):
            tensor_file.read_tensors(str(path), size, crc)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "a"
    for content in (b"", b"hello", b"\x08" + bytes(7) + b"notjson!", b"\x02" + bytes(7) + b"[]"):
        path.write_bytes(content)
        with pytest.raises(errors.CorruptCheckpointError, match="no safetensors file"):
            tensor_file.read_tensors(str(path))


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(errors.CorruptCheckpointError, match="is missing"):
        tensor_file.read_tensors(str(tmp_path / "a"))


def test_a_dtype_that_cannot_be_stored_is_named(tmp_path):
    with pytest.raises(errors.CheckpointError, match="x/y has dtype"):
        tensor_file.write_tensors(str(tmp_path / "a"), {"x/y": np.array(["text"])})
