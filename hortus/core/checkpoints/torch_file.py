"""Reads what `torch.save` wrote, without PyTorch and without running anything from the file.

Such a file is a pickle, in which tensors are calls that rebuild them from raw storages. Pickles can
call any function; here they can call none but a few of this module, which only note what is asked
for. Objects of unknown classes become empty shells. There are two forms: a zip archive with the
pickle and one member per storage (since PyTorch 1.6), and one stream of several pickles with the
storages at its end.
"""

import collections
import dataclasses
import io
import pickle
import struct
import zipfile
import zlib
from typing import Any, Optional

import numpy as np

from hortus.core.checkpoints.errors import CheckpointError, CorruptCheckpointError
from hortus.core.checkpoints.tensor_file import dtype_from_name

LEGACY_START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""A pickle of the number that begins every file of the older form."""
_LEGACY_VERSION = 1001
_DTYPES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}
# What a damaged or hostile pickle can make the unpickler raise.
_BROKEN = (
    pickle.UnpicklingError,
    EOFError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    RecursionError,
    MemoryError,
    OverflowError,
    NotImplementedError,
    UnicodeDecodeError,
)


@dataclasses.dataclass
class Storage:
    """Raw numbers: where they are is known once the whole file has been looked at."""

    key: str
    dtype: str
    count: int
    data: Optional[np.ndarray] = None


@dataclasses.dataclass
class TorchTensor:
    """A view of a storage, in elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def read(self) -> np.ndarray:
        """The values; a view of the file's bytes where they lie in order.

        Raises:
            CorruptCheckpointError: they lie outside of their storage.
        """
        data = self.storage.data
        last = self.offset + sum(
            (size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)
        )
        is_empty = 0 in self.shape
        if data is None or (not is_empty and not 0 <= last < len(data)):
            raise CorruptCheckpointError(
                f"a tensor of shape {self.shape} lies outside of its storage {self.storage.key}"
            )
        if is_empty:
            return np.zeros(self.shape, data.dtype)
        steps = tuple(stride * data.itemsize for stride in self.strides)
        return np.lib.stride_tricks.as_strided(
            data[self.offset :], self.shape, steps, writeable=False
        )


def read_torch_file(path: str) -> Any:
    """The object that was saved: dicts, lists, numbers, texts, and a `TorchTensor` for a tensor.

    Raises:
        CorruptCheckpointError: it is damaged.
        CheckpointError: it is a file of PyTorch without a pickled object, such as TorchScript.
    """
    try:
        if zipfile.is_zipfile(path):
            return _read_archive(path)
        return _read_stream(path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    except _BROKEN as error:
        raise CorruptCheckpointError(
            f"{path} is truncated or damaged: it cannot be read as a file of PyTorch ({error})."
        ) from error


def _read_archive(path: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        names = {name.partition("/")[2]: name for name in archive.namelist()}
        if "data.pkl" not in names:
            raise CheckpointError(f"{path} is a zip archive, but none that torch.save wrote.")
        if "constants.pkl" in names:
            raise CheckpointError(
                f"{path} is a TorchScript program. Save its state_dict() with torch.save, and load "
                "that file."
            )
        if "byteorder" in names and archive.read(names["byteorder"]) != b"little":
            raise CheckpointError(f"{path} was written by a big-endian machine.")
        storages: dict[str, Storage] = {}
        result = _Unpickler(io.BytesIO(archive.read(names["data.pkl"])), storages).load()
        for storage in storages.values():
            raw = archive.read(names[f"data/{storage.key}"])
            storage.data = _numbers(raw, storage)
    return result


def _read_stream(path: str) -> Any:
    with open(path, "rb") as file:
        raw = file.read()
    stream = io.BytesIO(raw)
    if not raw.startswith(LEGACY_START):
        raise ValueError("it does not begin as one")
    storages: dict[str, Storage] = {}
    _Unpickler(stream, storages).load()
    version = _Unpickler(stream, storages).load()
    if version != _LEGACY_VERSION:
        raise ValueError(f"its version is {version}, expected {_LEGACY_VERSION}")
    system = _Unpickler(stream, storages).load()
    if isinstance(system, dict) and not system.get("little_endian", True):
        raise CheckpointError(f"{path} was written by a big-endian machine.")
    result = _Unpickler(stream, storages).load()
    position_of: dict[str, int] = {}
    for key in _Unpickler(stream, storages).load():
        storage = storages[str(key)]
        position = stream.tell()
        (count,) = struct.unpack("<q", stream.read(8))
        size = count * dtype_from_name(storage.dtype).itemsize
        if count != storage.count or position + 8 + size > len(raw):
            raise ValueError(f"storage {key} is not all in it")
        storage.data = _numbers(memoryview(raw)[position + 8 : position + 8 + size], storage)
        position_of[str(key)] = position
        stream.seek(position + 8 + size)
    missing = storages.keys() - position_of.keys()
    if missing:
        raise ValueError(f"storage {min(missing)} is missing")
    return result


def _numbers(raw: Any, storage: Storage) -> np.ndarray:
    dtype = dtype_from_name(storage.dtype)
    if len(raw) < storage.count * dtype.itemsize:
        raise ValueError(f"storage {storage.key} is too short")
    return np.frombuffer(raw, dtype, storage.count)


class _Shell:
    """Stands for an object of a class that is of no interest; keeps nothing, does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs

    def __setstate__(self, state: Any) -> None:
        del state

    def __call__(self, *args: Any, **kwargs: Any) -> "_Shell":
        del args, kwargs
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        del key, value

    def append(self, item: Any) -> None:
        """As a list has; pickles of its subclasses call it."""
        del item

    def extend(self, items: Any) -> None:
        """As a list has; pickles of its subclasses call it."""
        del items

    def __hash__(self) -> int:
        return id(self)


class _StorageType:
    """A class of storages, as pickles name them."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype


def _rebuild_tensor(storage: Any, offset: int, shape: Any, strides: Any, *rest: Any) -> TorchTensor:
    del rest  # whether gradients are wanted, and hooks
    if not isinstance(storage, Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    sizes, steps = tuple(map(int, shape)), tuple(map(int, strides))
    if len(sizes) != len(steps) or int(offset) < 0 or any(n < 0 for n in (*sizes, *steps)):
        raise pickle.UnpicklingError(f"a tensor of shape {sizes} and strides {steps}")
    return TorchTensor(storage, int(offset), sizes, steps)


def _rebuild_parameter(data: Any, *rest: Any) -> Any:
    del rest
    return data


def _size(*args: Any) -> tuple[int, ...]:
    return tuple(args[0]) if args else ()


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch", "Size"): _size,
    **{("torch", name): _StorageType(dtype) for name, dtype in _DTYPES.items()},
}


class _Unpickler(pickle.Unpickler):
    """Knows the calls above and no others, so that nothing of the file is ever run."""

    def __init__(self, file: Any, storages: dict[str, Storage]) -> None:
        super().__init__(file, encoding="latin-1")
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        return _KNOWN.get((module, name), _Shell)

    def persistent_load(self, pid: Any) -> Any:
        kind, storage_type, key, _, count = pid[:5]
        if kind != "storage" or not isinstance(storage_type, _StorageType) or int(count) < 0:
            raise pickle.UnpicklingError(f"an unknown kind of storage, {kind!r}")
        if len(pid) > 5 and pid[5] is not None:
            raise pickle.UnpicklingError("a storage that is a part of another one")
        return self._storages.setdefault(
            str(key), Storage(str(key), storage_type.dtype, int(count))
        )
