import pytest

from hortus.testing import reference


def test_the_variable_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HORTUS_REFERENCE", str(tmp_path))
    assert reference.reference_dir() == tmp_path


def test_absent_data_skips_with_the_folder_in_the_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("HORTUS_REFERENCE", str(tmp_path / "nowhere"))
    with pytest.raises(pytest.skip.Exception, match="nowhere"):
        reference.reference_dir()
