import pytest

from hortus.vision.dataloaders import paths
from hortus.vision.dataloaders.errors import DataError


@pytest.fixture
def folder(tmp_path):
    for name in ("train-0.tfrecord", "train-1.tfrecord", "val-0.tfrecord"):
        (tmp_path / name).write_text("x")
    (tmp_path / "images").mkdir()
    return tmp_path


def names(found):
    return [path.rsplit("/", 1)[1] for path in found]


def test_patterns_lists_and_commas(folder):
    assert names(paths.match_files(f"{folder}/train-*")) == ["train-0.tfrecord", "train-1.tfrecord"]
    both = [f"{folder}/val-*", f"{folder}/train-0.tfrecord"]
    assert names(paths.match_files(both)) == ["val-0.tfrecord", "train-0.tfrecord"]
    assert paths.match_files(", ".join(both)) == paths.match_files(both)


def test_what_is_matched_twice_is_read_once(folder):
    twice = f"{folder}/train-*,{folder}/*-0.tfrecord"
    assert len(paths.match_files(twice)) == 3


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "input_path is empty"),
        ("{}/trian-0.tfrecord", r"no such file.*Did you mean .*train-0\.tfrecord"),
        ("{}/test-*", "no file matches.*train-0.tfrecord"),
        ("{}/nowhere/train-*", "nowhere is not there"),
        ("{}/images", "is a folder.*set file_type to folder"),
    ],
)
def test_what_is_not_there_shows_what_is(folder, pattern, message):
    with pytest.raises(DataError, match=message):
        paths.match_files(pattern.format(folder))


@pytest.mark.parametrize("name", ["a.jpg", "train/a.jpg", "./a.jpg", "b/../a.jpg", "..a/b.jpg"])
def test_names_below_the_folder_are_fine(name):
    paths.check_inside([name], "f.json")


@pytest.mark.parametrize("name", ["/etc/passwd", "../a.jpg", "b/../../a.jpg", ".."])
def test_names_that_lead_out_of_the_folder_need_leave(name):
    with pytest.raises(DataError, match=r"f\.json: .* leads out of .* allow_paths_outside"):
        paths.check_inside(["a.jpg", name], "f.json")
    paths.check_inside(["a.jpg", name], "f.json", allow_outside=True)


@pytest.mark.parametrize("name", [None, 3, "", "a\0b", ["a"]])
def test_what_is_no_name_is_said(name):
    with pytest.raises(DataError, match="is no name of a file"):
        paths.check_inside([name], "f.json", allow_outside=True)
