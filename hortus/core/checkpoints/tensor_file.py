"""Tensors in one file of the safetensors format.

The format is eight bytes with the length of a JSON header, the header, and the bytes of all tensors
one after the other (https://huggingface.co/docs/safetensors). It is written here rather than by the
`safetensors` package so that one pass over the data writes it, takes its checksum and sees a full
disk as it happens, and so that bfloat16 and float8 need no copy.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Optional

import numpy as np

from hortus.core.checkpoints import atomic_folder
from hortus.core.checkpoints.errors import CheckpointError, CorruptCheckpointError

_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}
_CODES = {name: code for code, name in _NAMES.items()}
_CHUNK = 8 << 20
# What is longer than this is no header but another kind of file.
_LONGEST_HEADER = 200 << 20


def dtype_from_name(name: str) -> np.dtype:
    """`'float32'` -> its dtype; bfloat16 and float8 too, which ml_dtypes adds to NumPy."""
    try:
        return np.dtype(name)
    except TypeError:
        # NumPy knows these once Keras is loaded, which brings ml_dtypes along.
        import keras  # noqa: F401

        return np.dtype(name)


def write_tensors(
    path: str, tensors: Mapping[str, np.ndarray], metadata: Optional[Mapping[str, str]] = None
) -> tuple[int, int]:
    """Writes `tensors` to a new file and flushes it to the disk.

    Returns:
        The number of bytes of the file and their CRC-32.
    """
    # Wide types first keep every tensor aligned; names then make the order a matter of content.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name in order:
        tensor = tensors[name]
        code = _CODES.get(tensor.dtype.name)
        if code is None:
            raise CheckpointError(f"{name} has dtype {tensor.dtype}, which cannot be saved")
        end = offset + tensor.nbytes
        header[name] = {"dtype": code, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)

    def chunks() -> Iterator[Any]:
        yield struct.pack("<Q", len(text)) + text
        for name in order:
            if tensors[name].nbytes:
                yield np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8)

    return atomic_folder.write_file(path, chunks())


def read_tensors(
    path: str, size: Optional[int] = None, crc: Optional[int] = None
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Reads all tensors of a file, and its metadata.

    Args:
        path: the file.
        size: the number of bytes it must have.
        crc: the CRC-32 that it must have.

    Raises:
        CorruptCheckpointError: it is damaged, or no safetensors file.
    """
    data = _read(path, size, crc)
    header, start = _header(data, path)
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        try:
            dtype = dtype_from_name(_NAMES[entry["dtype"]])
            begin, end = entry["data_offsets"]
            shape = tuple(entry["shape"])
            count = int(np.prod(shape, dtype=np.int64))
            if begin < 0 or end > len(data) - start or end - begin != count * dtype.itemsize:
                raise ValueError("its bytes lie outside of the file")
            flat = data[start + begin : start + end].view(dtype) if count else np.zeros(0, dtype)
            tensors[name] = flat.reshape(shape)
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptCheckpointError(
                f"{path} is truncated or edited: tensor {name} cannot be read ({error})."
            ) from error
    return tensors, metadata


def _read(path: str, size: Optional[int], crc: Optional[int]) -> np.ndarray:
    data: Any
    try:
        actual = os.stat(path).st_size
        if size is not None and actual != size:
            raise CorruptCheckpointError(f"{path} has {actual} bytes instead of {size}.")
        data = np.empty(actual, np.uint8)
        seen, position = 0, 0
        with open(path, "rb", buffering=0) as file:
            while position < actual:
                count = file.readinto(memoryview(data)[position : position + _CHUNK])
                if not count:
                    raise CorruptCheckpointError(f"{path} became shorter while it was read.")
                if crc is not None:
                    seen = zlib.crc32(memoryview(data)[position : position + count], seen)
                position += count
    except FileNotFoundError:
        raise CorruptCheckpointError(f"{path} is missing.") from None
    except OSError as error:
        raise CorruptCheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    if crc is not None and seen != crc:
        raise CorruptCheckpointError(
            f"{path} was changed after it was written: its checksum is {seen:08x} instead of "
            f"{crc:08x}."
        )
    return data


def _header(data: np.ndarray, path: str) -> tuple[dict[str, Any], int]:
    length = struct.unpack("<Q", data[:8].tobytes())[0] if len(data) >= 8 else 0
    if not 2 <= length <= min(len(data) - 8, _LONGEST_HEADER):
        raise CorruptCheckpointError(f"{path} is no safetensors file, or is truncated.")
    try:
        header = json.loads(data[8 : 8 + length].tobytes())
    except ValueError as error:
        raise CorruptCheckpointError(
            f"{path} is no safetensors file, or was edited: {error}."
        ) from error
    if not isinstance(header, dict):
        raise CorruptCheckpointError(f"{path} is no safetensors file, or was edited.")
    return header, 8 + length
