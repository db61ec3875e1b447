import os
import socket
import subprocess
import sys

import pytest

from hortus.core import atomic_file
from hortus.core.checkpoints import atomic_folder


def test_a_new_file_and_its_folder_appear(tmp_path):
    atomic_file.replace(tmp_path / "new" / "file", b"content")
    assert (tmp_path / "new" / "file").read_bytes() == b"content"
    assert os.listdir(tmp_path / "new") == ["file"]


def test_an_error_leaves_the_old_content_and_no_other_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    atomic_file.replace(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        atomic_file.replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", [".replacing.tmp@{host}@{pid}", ".replacing-{pid}.tmp"])
def test_what_a_killed_writer_left_is_deleted_at_the_next_start(tmp_path, name):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], stdout=-1)
    pids = {"dead": int(gone.stdout), "alive": os.getppid()}
    names = {key: name.format(host=socket.gethostname(), pid=pid) for key, pid in pids.items()}
    for each in names.values():
        (tmp_path / each).write_bytes(b"half")
    (tmp_path / "params.yaml").write_text("task: {}")
    assert atomic_folder.remove_abandoned(str(tmp_path)) == [str(tmp_path / names["dead"])]
    assert sorted(os.listdir(tmp_path)) == sorted([names["alive"], "params.yaml"])


def test_a_link_is_deleted_and_not_what_it_leads_to(tmp_path):
    (tmp_path / "precious").mkdir()
    link = tmp_path / f".a.tmp@{socket.gethostname()}@{2**22 + 1}"  # no process has such a number
    link.symlink_to(tmp_path / "precious")
    assert atomic_folder.remove_abandoned(str(tmp_path)) == [str(link)]
    assert os.listdir(tmp_path) == ["precious"]


def test_other_folders_are_left_alone(tmp_path):
    for name in ("a", "a.replaced", ".hidden", "b.tmp"):
        (tmp_path / name).mkdir()
    assert atomic_folder.remove_abandoned(str(tmp_path)) == []
