import pytest

from hortus.core import train_utils
from hortus.vision.dataloaders import dataset_info
from hortus.vision.dataloaders.dataset_info import FILE_NAME, DatasetInfo, read_info, write_info
from hortus.vision.dataloaders.errors import DataError


def test_classes_and_sizes_travel_with_the_files(tmp_path):
    write_info(str(tmp_path), ["ant", "bée"], {"train-0": 5, "train-1": 7, "val-0": 2})
    files = [str(tmp_path / name) for name in ("train-0", "train-1")]
    assert read_info(files) == DatasetInfo(("ant", "bée"), 12)
    assert read_info([*files, str(tmp_path / "other")]) == DatasetInfo(("ant", "bée"), None)


def test_nothing_is_known_of_plain_files(tmp_path):
    assert read_info([str(tmp_path / "train-0")]) == DatasetInfo()


def test_folders_must_agree(tmp_path):
    for name, classes in (("a", ["ant"]), ("b", ["bee"])):
        (tmp_path / name).mkdir()
        write_info(str(tmp_path / name), classes, {})
    with pytest.raises(DataError, match=r"b: its classes \(bee\) are not those"):
        read_info([str(tmp_path / "a" / "x"), str(tmp_path / "b" / "x")])


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / FILE_NAME).write_text("{")
    with pytest.raises(DataError, match=f"{FILE_NAME}: not a JSON file"):
        read_info([str(tmp_path / "x")])


def test_names_of_a_models_classes(tmp_path):
    folder = str(tmp_path / "run")
    assert dataset_info.read_class_names(folder) == ()
    train_utils.save_class_names(["bee", "Äpfel"], folder)
    train_utils.save_class_names(["ant", "Äpfel"], folder)
    assert dataset_info.read_class_names(folder) == ("ant", "Äpfel")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["class_names.json"]
    (tmp_path / "run" / "class_names.json").write_text('{"0": "ant"}')
    with pytest.raises(DataError, match="expected a list of names"):
        dataset_info.read_class_names(folder)
