import os
import pathlib
import types

import pytest

from hortus.core.actions import ExportAction


def export(action, *steps):
    for step in steps:
        action.bind(types.SimpleNamespace(step=step))
        action({})


def fill(folder):
    pathlib.Path(folder, "model").write_text("content")


def test_numbered_folders_and_the_newest_stay(tmp_path):
    action = ExportAction(fill, tmp_path / "export", max_to_keep=2)
    export(action, 90, 100, 1000)
    assert action.exports == [str(tmp_path / "export" / "100"), str(tmp_path / "export" / "1000")]
    assert sorted(os.listdir(tmp_path / "export")) == ["100", "1000"]
    assert (tmp_path / "export" / "1000" / "model").read_text() == "content"


def test_zero_keeps_all_and_a_step_that_comes_again_is_replaced(tmp_path):
    action = ExportAction(fill, tmp_path, max_to_keep=0)
    export(action, 1, 2, 3, 2)
    assert sorted(os.listdir(tmp_path)) == ["1", "2", "3"]


def test_an_export_that_fails_leaves_nothing(tmp_path):
    def fail(folder):
        fill(folder)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        export(ExportAction(fail, tmp_path), 1)
    assert os.listdir(tmp_path) == []


def test_only_the_chief_exports(tmp_path):
    export(ExportAction(fill, tmp_path, is_chief=False), 1)
    assert os.listdir(tmp_path) == []
