"""Kills, full disks and disks that cannot be written: the checkpoints before survive them all."""

import errno
import json
import os
import resource
import shutil
import subprocess

import keras
import numpy as np
import pytest

from hortus import testing
from hortus.core.checkpoints import errors
from hortus.core.checkpoints.checkpoint import Checkpoint
from hortus.core.checkpoints.manager import CheckpointManager

# Keras on NumPy has no threads, so that a process with it can be forked for each kill.
_KILLS = """
import json, os, random, select, signal, time
import keras
import numpy as np
from hortus.core.checkpoints import Checkpoint, CheckpointManager

random.seed(0)
told = {"leftovers": 0, "restored": [], "expected": []}

def run(directory, size):
    variable = keras.Variable(np.zeros(size, "float32"))
    return CheckpointManager(Checkpoint(x=variable), directory, max_to_keep=2), variable

def child(directory, size, pipe):
    manager, variable = run(directory, size)
    step = manager.restore() or 0
    while True:
        step += 1
        variable.assign(np.full(size, step, "float32"))
        os.write(pipe, b"%d," % step)  # begins; the one before is then pending or on the disk
        manager.save(step)

for kill in range(20):
    # 8 MB take some tens of milliseconds to write: most of those kills come inside of a write.
    name, size = ("large", 2_000_000) if kill % 2 else ("tiny", 4)
    directory = os.path.join(DIRECTORY, name)
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        child(directory, size, writer)
    os.close(writer)
    select.select([reader], [], [], 30)
    time.sleep(random.uniform(0, 0.2))
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    begun = b""
    while part := os.read(reader, 65536):
        begun += part
    os.close(reader)
    last = int(begun.split(b",")[-2])
    told["leftovers"] += any(".tmp@" in entry for entry in os.listdir(directory))
    manager, variable = run(directory, size)
    step = manager.restore() or 0
    told["restored"].append(step)
    # save(n) begins to write once n - 1 is committed; so n - 2 is there for sure, when n begins.
    told["expected"].append([last - 2, last])
    assert np.all(variable.numpy() == step), "a mixture of two checkpoints"

for name, size in (("tiny", 4), ("large", 2_000_000)):
    manager, variable = run(os.path.join(DIRECTORY, name), size)
    manager.save((manager.restore() or 0) + 1)
    manager.wait()
    told[name] = sorted(os.listdir(manager.directory))
print("TOLD", json.dumps(told))
"""


def test_a_run_survives_kills_at_any_moment(tmp_path):
    output = testing.run_under_engine("numpy", f"DIRECTORY = {str(tmp_path)!r}\n{_KILLS}")
    told = json.loads(output.rpartition("TOLD")[2])
    assert len(told["restored"]) == 20
    for restored, (least, most) in zip(told["restored"], told["expected"], strict=True):
        assert least <= restored <= most
    assert told["leftovers"] >= 3  # kills did come inside of writes
    for name in ("tiny", "large"):
        assert len(told[name]) == 2, told[name]  # max_to_keep, and nothing else
        assert all(entry.startswith("ckpt-") for entry in told[name])


# A disk of its own in a namespace of its own, which is gone when the process is.
_DISK = """
import json, os, subprocess
import keras
import numpy as np
from hortus.core.checkpoints import Checkpoint, CheckpointError, CheckpointManager
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", DIRECTORY], check=True)
told = {}
variable = keras.Variable(np.zeros(300_000, "float32"))  # 1.2 MB
manager = CheckpointManager(Checkpoint(x=variable), DIRECTORY)

def fails(step):
    manager.save(step)
    manager.wait()

for step in (1, 2):
    variable.assign(np.full(300_000, step, "float32"))
    manager.save(step)
manager.wait()
try:
    fails(3)
except CheckpointError as error:
    told["full"] = str(error)
told["after full"] = sorted(os.listdir(DIRECTORY))
told["restored"] = manager.restore()
told["value"] = float(variable.numpy()[0])
smaller = CheckpointManager(Checkpoint(x=variable), DIRECTORY, max_to_keep=1)
subprocess.run(["rm", "-r", os.path.join(DIRECTORY, "ckpt-1")], check=True)
smaller.save(4)
smaller.wait()
told["after space was made"] = sorted(os.listdir(DIRECTORY))
subprocess.run(["mount", "-o", "remount,ro", DIRECTORY], check=True)
try:
    fails(5)
except CheckpointError as error:
    told["read-only"] = str(error)
told["restored read-only"] = manager.restore()
print("TOLD", json.dumps(told))
"""


def may_mount():
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_real_disk_that_is_full_and_then_read_only(tmp_path, monkeypatch):
    if not may_mount():
        pytest.skip("this system does not let a test mount a disk of its own")
    # `unshare` stands before Python, so that all of the process is in the namespace.
    code = f"DIRECTORY = {str(tmp_path)!r}\n{_DISK}"
    run = subprocess.run

    def in_namespace(command, **kwargs):
        return run(["unshare", "-rm", *command], **kwargs)

    monkeypatch.setattr(subprocess, "run", in_namespace)
    told = json.loads(testing.run_under_engine("numpy", code).rpartition("TOLD")[2])
    assert "No space left on device" in told["full"]
    assert "checkpoints before it are untouched" in told["full"]
    assert f"are free on the disk of {tmp_path}" in told["full"]
    assert told["after full"] == ["ckpt-1", "ckpt-2"]
    assert (told["restored"], told["value"]) == (2, 2.0)
    assert told["after space was made"] == ["ckpt-4"]
    assert "Read-only file system" in told["read-only"]
    assert "choose another model_dir" in told["read-only"]
    assert told["restored read-only"] == 4


@pytest.fixture
def variable():
    return keras.Variable(np.arange(1000, dtype="float32"))


@pytest.fixture
def manager(tmp_path, variable):
    manager = CheckpointManager(Checkpoint(x=variable), tmp_path)
    manager.save(1)
    manager.wait()
    return manager


def check_untouched(manager, variable, tmp_path):
    """After a failure: no leftovers, the checkpoint before restores, and saving works again."""
    assert os.listdir(tmp_path) == ["ckpt-1"]
    variable.assign(np.zeros(1000))
    assert manager.restore() == 1
    assert variable.numpy().tolist() == list(range(1000))
    manager.save(2)
    manager.wait()
    assert sorted(os.listdir(tmp_path)) == ["ckpt-1", "ckpt-2"]


@pytest.mark.parametrize("room", [0, 10, 1500, 4300])
def test_a_disk_that_becomes_full_after_some_bytes(tmp_path, manager, variable, monkeypatch, room):
    left, write = [room], os.write

    def limited(descriptor, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        data = data[: left[0]]
        left[0] -= len(data)
        return write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", limited)
        manager.save(2)
        with pytest.raises(errors.CheckpointError, match=r"ckpt-2: No space left.* MB are free"):
            manager.wait()
    check_untouched(manager, variable, tmp_path)


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_disk_that_fails_at_the_end(tmp_path, manager, variable, monkeypatch, call):
    def failing(*arguments):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        manager.save(2)
        with pytest.raises(errors.CheckpointError, match="Input/output error"):
            manager.wait()
    check_untouched(manager, variable, tmp_path)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_directory_that_cannot_be_written(tmp_path, manager, variable, monkeypatch, number):
    def refused(path, *arguments):
        raise OSError(number, os.strerror(number), path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", refused)
        # Not even begun: this is known at once, not in the background.
        with pytest.raises(errors.CheckpointError, match=r"is writable, or choose another"):
            manager.save(2)
    check_untouched(manager, variable, tmp_path)


def test_the_limit_of_the_system_on_files(tmp_path, manager, variable):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))
    try:
        manager.save(2)
        with pytest.raises(errors.CheckpointError, match=r"File too large.*ulimit -f"):
            manager.wait()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    check_untouched(manager, variable, tmp_path)


def test_a_file_where_the_directory_should_be(tmp_path, variable):
    (tmp_path / "run").write_text("a file")
    manager = CheckpointManager(Checkpoint(x=variable), tmp_path / "run")
    assert manager.restore() is None
    with pytest.raises(errors.CheckpointError, match="A file stands where a folder is needed"):
        manager.save(1)
    assert (tmp_path / "run").read_text() == "a file"
