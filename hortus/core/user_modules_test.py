import sys

import pytest

from hortus.core import user_modules


def test_what_was_asked_for_is_remembered(tmp_path, monkeypatch):
    (tmp_path / "garden_of_mine.py").write_text("planted = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    user_modules.load("garden_of_mine")
    assert "garden_of_mine" in user_modules.asked()
    assert user_modules.file_of("garden_of_mine") == str(tmp_path / "garden_of_mine.py")
    with pytest.raises(ModuleNotFoundError):
        user_modules.load("garden_of_nobody")
    assert "garden_of_nobody" not in user_modules.asked()
    del sys.modules["garden_of_mine"]
    user_modules._asked.pop("garden_of_mine")


def test_only_modules_of_users_count():
    names = ["mine", "hortus.core", "os.path", "__main__", "mine", "mine.task"]
    assert user_modules.foreign(names) == ["mine", "mine.task"]
    assert user_modules.is_name("mine.task")
    for text in ("os", "__main__", "hortus.cli", "../mine", "mine.", "mine;x", "", "1a", None):
        assert not user_modules.is_name(text)
