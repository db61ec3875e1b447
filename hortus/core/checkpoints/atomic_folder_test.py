import os
import subprocess
import sys
import time
import zlib

import pytest

from hortus.core.checkpoints import atomic_folder


def put(folder, name="a", text="x"):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def text_of(path, name="a"):
    with open(os.path.join(path, name)) as file:
        return file.read()


def leftover(path, purpose="tmp", process=None, host=None):
    """A temporary folder as another process would have left it."""
    own = atomic_folder.temporary(str(path)).replace(".tmp@", f".{purpose}@")
    _, own_host, own_process = own.rsplit("@", 2)
    folder = own[: -len(f"@{own_host}@{own_process}")]
    folder += f"@{host or own_host}@{process or own_process}"
    os.mkdir(folder)
    put(folder)
    return folder


@pytest.fixture
def dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_nothing_is_seen_before_the_commit(tmp_path):
    path = str(tmp_path / "new" / "x")
    folder = atomic_folder.begin(path)
    put(folder)
    assert not os.path.exists(path)
    assert os.path.dirname(folder) == os.path.dirname(path)  # a rename must not cross disks
    atomic_folder.commit(folder, path)
    assert text_of(path) == "x"
    assert os.listdir(tmp_path / "new") == ["x"]


def test_a_commit_replaces_what_is_there(tmp_path):
    path = str(tmp_path / "x")
    for text in ("old", "new"):
        folder = atomic_folder.begin(path)
        put(folder, text=text)
        atomic_folder.commit(folder, path)
    assert text_of(path) == "new"
    assert os.listdir(tmp_path) == ["x"]


def test_a_replacement_has_the_old_content_somewhere_at_each_moment(tmp_path, monkeypatch):
    path = str(tmp_path / "x")
    folder = atomic_folder.begin(path)
    put(folder, text="old")
    atomic_folder.commit(folder, path)
    folder = atomic_folder.begin(path)
    put(folder, text="new")
    rename, moments = os.rename, []

    def watched(source, target):
        rename(source, target)
        place = path if os.path.isdir(path) else atomic_folder.replaced(path)
        moments.append(text_of(place))

    monkeypatch.setattr(os, "rename", watched)
    atomic_folder.commit(folder, path)
    assert moments == ["old", "new"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs the /proc of Linux")
def test_files_and_folder_are_flushed_before_the_rename(tmp_path, monkeypatch):
    path, events = str(tmp_path / "x"), []
    folder = atomic_folder.begin(path)
    put(folder)
    fsync, rename = os.fsync, os.rename

    def watched_fsync(descriptor):
        events.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def watched_rename(source, target):
        events.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "rename", watched_rename)
    atomic_folder.commit(folder, path)
    assert events == [os.path.join(folder, "a"), folder, "rename", str(tmp_path)]


def test_what_dead_writers_left_is_cleaned_up(tmp_path, dead_process):
    dead = leftover(tmp_path / "x", process=dead_process)
    trash = leftover(tmp_path / "y", "trash", process=dead_process)
    mine = leftover(tmp_path / "x")
    parents = leftover(tmp_path / "x", process=os.getppid())
    distant = leftover(tmp_path / "x", process=dead_process, host="elsewhere")
    put(tmp_path, "notes.txt")
    assert set(atomic_folder.clean_up(str(tmp_path))) == {dead, trash}
    rest = {os.path.join(tmp_path, name) for name in os.listdir(tmp_path)}
    assert rest == {mine, parents, distant, str(tmp_path / "notes.txt")}


def test_what_another_host_left_long_ago_is_cleaned_up(tmp_path):
    folder = leftover(tmp_path / "x", host="elsewhere")
    long_ago = time.time() - 7200
    for path in (os.path.join(folder, "a"), folder):
        os.utime(path, (long_ago, long_ago))
    assert atomic_folder.clean_up(str(tmp_path)) == [folder]


def test_replaced_content_is_cleaned_up_only_if_the_new_is_there(tmp_path):
    for name in ("x", "x.replaced", "y.replaced"):
        (tmp_path / name).mkdir()
    assert atomic_folder.clean_up(str(tmp_path)) == [str(tmp_path / "x.replaced")]


def test_cleaning_a_directory_that_is_not_there_does_nothing(tmp_path):
    assert atomic_folder.clean_up(str(tmp_path / "nowhere")) == []


def test_write_file_counts_and_sums_up_what_it_wrote(tmp_path):
    path = str(tmp_path / "a")
    big = os.urandom(20 << 20)
    assert atomic_folder.write_file(path, [b"abc", big]) == (
        3 + len(big),
        zlib.crc32(b"abc" + big),
    )
    with open(path, "rb") as file:
        assert file.read() == b"abc" + big
    assert atomic_folder.checksum_file(path) == (3 + len(big), zlib.crc32(b"abc" + big))


def test_write_file_goes_on_after_a_short_write(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))
    atomic_folder.write_file(str(tmp_path / "a"), [b"abcdefg"])
    assert (tmp_path / "a").read_bytes() == b"abcdefg"


def test_replace_file_keeps_the_old_content_when_writing_fails(tmp_path, monkeypatch):
    path = str(tmp_path / "a")
    atomic_folder.replace_file(path, b"old")

    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        atomic_folder.replace_file(path, b"new")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_remove_leaves_nothing(tmp_path):
    (tmp_path / "x").mkdir()
    put(tmp_path / "x")
    atomic_folder.remove(str(tmp_path / "x"))
    atomic_folder.remove(str(tmp_path / "x"))
    assert os.listdir(tmp_path) == []
