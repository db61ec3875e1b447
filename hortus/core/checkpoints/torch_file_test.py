"""Files as `torch.save` writes them, made here without PyTorch, whole and damaged."""

import collections
import io
import pickle
import struct
import sys
import types
import zipfile

import numpy as np
import pytest

from hortus.core.checkpoints import errors
from hortus.core.checkpoints.state_dict import read_state_dict
from hortus.core.checkpoints.torch_file import LEGACY_START, TorchTensor, read_torch_file

NAMES = {"float32": "FloatStorage", "int64": "LongStorage", "float16": "HalfStorage"}


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    """Modules with the names that pickles of PyTorch refer to."""
    main, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in NAMES.values():
        setattr(main, name, type(name, (), {"__module__": "torch"}))
    for name in ("_rebuild_tensor_v2", "_rebuild_parameter"):
        exec(f"def {name}(*args): raise AssertionError('it was called')", utils.__dict__)
        getattr(utils, name).__module__ = "torch._utils"
    monkeypatch.setitem(sys.modules, "torch", main)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)
    return main


class Stored:
    """A tensor as PyTorch pickles it: a call that rebuilds it from a storage."""

    def __init__(self, array, offset=0, shape=None, strides=None):
        self.array = array
        self.view = (
            offset,
            array.shape if shape is None else shape,
            tuple(s // array.itemsize for s in array.strides) if strides is None else strides,
        )

    def __reduce__(self):
        arguments = (Raw(self.array), *self.view, False, collections.OrderedDict())
        return sys.modules["torch._utils"]._rebuild_tensor_v2, arguments


class Raw:
    def __init__(self, array):
        self.array = array


class Pickler(pickle.Pickler):
    def __init__(self, file, legacy):
        super().__init__(file, protocol=2)
        self.legacy = legacy
        self.storages = {}

    def persistent_id(self, item):
        if not isinstance(item, Raw):
            return None
        key = next((k for k, a in self.storages.items() if a is item.array), None)
        if key is None:
            key = str(len(self.storages))
            self.storages[key] = item.array
        kind = getattr(sys.modules["torch"], NAMES[item.array.dtype.name])
        pid = ("storage", kind, key, "cpu", item.array.size)
        return (*pid, None) if self.legacy else pid


def save(path, item, legacy=False):
    file = io.BytesIO()
    if legacy:
        for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}):
            pickle.dump(part, file, protocol=2)
    pickler = Pickler(file, legacy)
    pickler.dump(item)
    if not legacy:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model/data.pkl", file.getvalue())
            for key, array in pickler.storages.items():
                archive.writestr(f"model/data/{key}", array.tobytes())
            archive.writestr("model/version", b"3\n")
        return path
    pickle.dump(list(pickler.storages), file, protocol=2)
    for array in pickler.storages.values():
        file.write(struct.pack("<q", array.size) + array.tobytes())
    path.write_bytes(file.getvalue())
    return path


def arrays():
    rng = np.random.default_rng(0)
    return {
        "conv.weight": rng.normal(size=(4, 3, 3, 3)).astype("float32"),
        "bn.running_var": rng.uniform(size=4).astype("float32"),
        "bn.num_batches_tracked": np.array(7, "int64"),
        "half": rng.normal(size=5).astype("float16"),
        "empty": np.zeros((0, 3), "float32"),
    }


FORMS = pytest.mark.parametrize("legacy", [False, True], ids=["zip", "stream"])


@FORMS
def test_tensors_come_back(tmp_path, legacy):
    expected = arrays()
    path = save(tmp_path / "a.pth", {k: Stored(v) for k, v in expected.items()}, legacy)
    found = read_state_dict(path)
    assert found.keys() == list(expected)
    for name, array in expected.items():
        assert found.shape(name) == array.shape
        assert found.read(name).dtype == array.dtype
        np.testing.assert_array_equal(found.read(name), array)


def test_the_older_form_begins_as_told(tmp_path):
    assert save(tmp_path / "a.pth", {}, legacy=True).read_bytes().startswith(LEGACY_START)


@FORMS
def test_views_share_a_storage(tmp_path, legacy):
    base = np.arange(24, dtype="float32")
    item = {
        "whole": Stored(base, 0, (2, 3, 4), (12, 4, 1)),
        "transposed": Stored(base, 0, (4, 6), (1, 4)),
        "part": Stored(base, 5, (3,), (2,)),
    }
    found = read_state_dict(save(tmp_path / "a.pth", item, legacy))
    np.testing.assert_array_equal(found.read("transposed"), base.reshape(6, 4).T)
    np.testing.assert_array_equal(found.read("part"), base[5:11:2])
    assert found.read("whole").shape == (2, 3, 4)


def test_a_view_beyond_its_storage_is_refused(tmp_path):
    item = {"a": Stored(np.zeros(4, "float32"), 2, (3,), (1,))}
    found = read_state_dict(save(tmp_path / "a.pth", item))
    with pytest.raises(errors.CorruptCheckpointError, match="outside of its storage"):
        found.read("a")


def test_a_training_file_has_its_weights_inside(tmp_path):
    weights = {"module.a": Stored(np.ones(2, "float32"))}
    averages = {"module.a": Stored(np.zeros(2, "float32"))}
    item = {"epoch": 3, "state_dict": weights, "state_dict_ema": averages, "optimizer": {"x": [1]}}
    found = read_state_dict(save(tmp_path / "a.pth", item))
    assert found.keys() == ["a"]
    assert found.read("a").tolist() == [1, 1]
    assert found.has_averages
    assert found.averaged().read("a").tolist() == [0, 0]


class Evil:
    ran = False

    def __reduce__(self):
        return Evil.run, ()

    @staticmethod
    def run():
        Evil.ran = True


@FORMS
def test_nothing_of_the_file_is_run(tmp_path, legacy):
    import os

    class Command:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'harm'}",)

    item = {"a": Stored(np.ones(2, "float32")), "args": Evil(), "b": Command()}
    found = read_torch_file(save(tmp_path / "a.pth", item, legacy))
    assert not Evil.ran
    assert not (tmp_path / "harm").exists()
    assert isinstance(found["a"], TorchTensor)


def test_what_holds_no_tensors_is_told(tmp_path):
    with pytest.raises(errors.CheckpointError, match="holds no named tensors, only epoch"):
        read_state_dict(save(tmp_path / "a.pth", {"epoch": 3}))
    with pytest.raises(errors.CheckpointError, match="but a list"):
        read_state_dict(save(tmp_path / "a.pth", [1, 2]))


@FORMS
def test_damaged_files_are_refused_or_right(tmp_path, legacy):
    """A changed byte in a number cannot be noticed in the stream; all else is."""
    expected = arrays()
    path = save(tmp_path / "a.pth", {k: Stored(v) for k, v in expected.items()}, legacy)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    damaged = tmp_path / "b.pth"
    refused = 0
    for attempt in range(1000):
        data = bytearray(whole)
        if attempt % 4 == 0:
            data = data[: rng.integers(len(data))]
        elif attempt % 4 == 1:
            start = int(rng.integers(len(data)))
            del data[start : start + int(rng.integers(1, 40))]
        else:
            for _ in range(int(rng.integers(1, 5))):
                data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        damaged.write_bytes(data)
        try:
            found = read_state_dict(damaged)
            for name in found.keys():  # noqa: SIM118
                found.read(name)
        except errors.CheckpointError:
            refused += 1
    # In the zip every member has a checksum; in the stream half of the file is raw numbers.
    assert refused > (800 if not legacy else 500)
