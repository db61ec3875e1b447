"""Reads TensorFlow 2 checkpoints (`prefix.index`, `prefix.data-00000-of-00001`) with NumPy alone.

The index is a table of sorted keys in blocks, as in LevelDB, whose values are protocol buffers; the
data files hold the raw bytes of the tensors. Both are described in TensorFlow's public sources
(`tensor_bundle.proto`, `trackable_object_graph.proto`).
"""

import functools
import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from hortus.core.checkpoints.errors import CheckpointError, CorruptCheckpointError
from hortus.core.checkpoints.tensor_file import dtype_from_name
from hortus.core.checkpoints.tf2.crc32c import crc32c, unmask

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5
_STRING = 7
_DTYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
    24: "float8_e5m2",
    25: "float8_e4m3fn",
}

Fields = dict[int, list[Any]]


class TensorBundle:
    """The tensors of a checkpoint, each read when it is asked for.

    Args:
        prefix: path without `.index`.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = os.fspath(prefix).removesuffix(".index")

    @functools.cached_property
    def _entries(self) -> dict[str, Fields]:
        """Key to BundleEntryProto; the header, a BundleHeaderProto, under the empty key."""
        data = self._file(".index")
        if len(data) < _FOOTER or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
            raise CorruptCheckpointError(
                f"{self.prefix}.index is no index of a TensorFlow checkpoint, or is truncated."
            )
        try:
            position = len(data) - _FOOTER
            for _ in range(2):
                _, position = _varint(data, position)
            index, _ = _handle(data, position)
            entries = {}
            for _, value in self._block(data, *index):
                block, _ = _handle(value, 0)
                for key, entry in self._block(data, *block):
                    entries[key.decode()] = parse_fields(entry)
        except (IndexError, struct.error, UnicodeDecodeError) as error:
            raise self._damaged(".index") from error
        header = entries.get("", {})
        if header.get(2, [0])[0] != 0:
            raise CheckpointError(f"{self.prefix} was written by a big-endian machine")
        return entries

    def keys(self) -> list[str]:
        """The keys of all tensors, sorted."""
        return sorted(key for key in self._entries if key)

    def __contains__(self, key: str) -> bool:
        return bool(key) and key in self._entries

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of a tensor, without reading it."""
        shape = parse_fields(self._entry(key).get(2, [b""])[0])
        return tuple(parse_fields(dim).get(1, [0])[0] for dim in shape.get(2, []))

    def is_numeric(self, key: str) -> bool:
        """Whether a tensor holds numbers, and not text."""
        return self._entry(key).get(1, [0])[0] in _DTYPES

    def read(self, key: str) -> np.ndarray:
        """Reads a tensor of numbers.

        Raises:
            CheckpointError: there is no such tensor, or not of numbers.
            CorruptCheckpointError: its file is missing, truncated or changed.
        """
        entry = self._entry(key)
        if not self.is_numeric(key):
            raise CheckpointError(f"{self.prefix}: {key} holds no numbers")
        if 7 in entry:
            raise CheckpointError(f"{self.prefix}: {key} is stored in slices, which are not read")
        dtype = dtype_from_name(_DTYPES[entry[1][0]])
        raw = self._raw(key, entry)
        shape = self.shape(key)
        if raw.size != int(np.prod(shape, dtype=np.int64)) * dtype.itemsize:
            raise self._damaged(".index")
        told = struct.unpack("<I", entry[6][0])[0] if 6 in entry else None
        if told is not None and crc32c(raw) != unmask(told):
            raise CorruptCheckpointError(f"{self.prefix}: {key} was changed after it was written.")
        return raw.view(dtype).reshape(shape) if raw.size else np.zeros(shape, dtype)

    def read_text(self, key: str) -> bytes:
        """Reads a tensor that is one string."""
        raw = self._raw(key, self._entry(key)).tobytes()
        try:
            length, position = _varint(raw, 0)
        except IndexError as error:
            raise self._damaged(".data") from error
        # A checksum of the lengths stands between them and the text.
        return raw[position + 4 : position + 4 + length]

    def _entry(self, key: str) -> Fields:
        if key not in self:
            raise CheckpointError(f"{self.prefix} has no tensor {key}")
        return self._entries[key]

    def _raw(self, key: str, entry: Fields) -> np.ndarray:
        shard, offset, size = (entry.get(field, [0])[0] for field in (3, 4, 5))
        count = self._entries.get("", {}).get(1, [1])[0]
        path = f"{self.prefix}.data-{shard:05d}-of-{count:05d}"
        try:
            raw = np.fromfile(path, np.uint8, count=size, offset=offset)
        except FileNotFoundError:
            raise CorruptCheckpointError(
                f"{path} is missing: a TensorFlow checkpoint needs all its data files."
            ) from None
        except OSError as error:
            raise CorruptCheckpointError(f"{path} cannot be read: {error.strerror}.") from error
        if raw.size != size:
            raise CorruptCheckpointError(f"{path} is truncated: {key} is not all in it.")
        return raw

    def _block(self, data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        """The keys and values of one block of the index."""
        kind = data[offset + size]
        told = struct.unpack("<I", data[offset + size + 1 : offset + size + _TRAILER])[0]
        checked = np.frombuffer(data, np.uint8, size + 1, offset)
        if crc32c(checked) != unmask(told):
            raise self._damaged(".index")
        if kind != 0:
            raise CheckpointError(
                f"{self.prefix}.index is compressed, which is not read. Load the checkpoint with "
                "TensorFlow once and save it again."
            )
        block = data[offset : offset + size]
        restarts = struct.unpack("<I", block[-4:])[0]
        end, position, key = size - 4 - 4 * restarts, 0, b""
        while position < end:
            shared, position = _varint(block, position)
            fresh, position = _varint(block, position)
            length, position = _varint(block, position)
            key = key[:shared] + block[position : position + fresh]
            position += fresh
            yield key, block[position : position + length]
            position += length

    def _file(self, ending: str) -> bytes:
        try:
            with open(self.prefix + ending, "rb") as file:
                return file.read()
        except OSError as error:
            raise CheckpointError(f"{self.prefix}{ending}: {error.strerror}.") from error

    def _damaged(self, ending: str) -> CorruptCheckpointError:
        return CorruptCheckpointError(f"{self.prefix}{ending} is truncated or was changed.")


def parse_fields(data: bytes) -> Fields:
    """A protocol buffer message: field number to its values, which are integers or bytes."""
    fields: Fields = {}
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        value: Any
        if kind == 0:
            value, position = _varint(data, position)
        else:
            if kind == 2:
                length, position = _varint(data, position)
            else:
                length = {5: 4, 1: 8}.get(kind, -1)
            if length < 0 or position + length > len(data):
                raise IndexError("message ends too soon")
            value = data[position : position + length]
            position += length
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _handle(data: bytes, position: int) -> tuple[tuple[int, int], int]:
    offset, position = _varint(data, position)
    size, position = _varint(data, position)
    return (offset, size), position
