import os

import pytest

from hortus.core import atomic_file


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
