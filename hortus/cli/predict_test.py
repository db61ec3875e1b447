"""`hortus predict` and `hortus export`, on a tiny model."""

import json

import pytest

from hortus.cli.main import main
from hortus.testing import runs
from hortus.vision.data import shapes
from hortus.vision.serving import predictor


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    shapes.write_folders(folder, num_train=1, num_val=1, size=48)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory, pictures):
    folder = tmp_path_factory.mktemp("run")
    runs.make_classifier(folder, pictures)
    return folder


def read(folder, name):
    return json.loads((folder / name).read_text("utf-8"))


def test_results_are_written(run, pictures, tmp_path, capsys):
    output = tmp_path / "out"
    assert main(["predict", str(run), str(pictures / "val"), "-o", str(output)]) == 0
    assert "4 images predicted" in capsys.readouterr().out
    rows = read(output, "predictions.json")
    assert [row["image_id"] for row in rows] == [1, 2, 3, 4]
    assert {each["class"] for each in rows[0]["classes"]} == set(shapes.CLASSES)
    images = read(output, "images.json")
    assert all((output / image["picture"]).is_file() for image in images)
    assert (images[0]["height"], images[0]["width"]) == (48, 48)


def test_unreadable_files_are_skipped_with_exit_code_1(run, pictures, tmp_path, capsys):
    (tmp_path / "broken.png").write_bytes(b"")
    command = ["predict", str(run), str(pictures / "val"), str(tmp_path / "broken.png")]
    assert main([*command, "-o", str(tmp_path / "out"), "--no-pictures"]) == 1
    shown = capsys.readouterr()
    assert "4 images predicted" in shown.out and "1 file was skipped" in shown.err
    assert read(tmp_path / "out", "images.json")[-1]["skipped"] == "the file is empty"
    assert not (tmp_path / "out" / "pictures").exists()


def test_an_interruption_says_how_to_go_on(run, pictures, tmp_path, capsys, monkeypatch):
    whole = predictor.Predictor.stream

    def stream(self, images, *arguments, **options):
        for number, result in enumerate(whole(self, images, *arguments, **options)):
            if number == 2:
                raise KeyboardInterrupt
            yield result

    command = ["predict", str(run), str(pictures / "val"), "-o", str(tmp_path / "out")]
    with monkeypatch.context() as patch:
        patch.setattr(predictor.Predictor, "stream", stream)
        assert main(command) == 130
    assert "2 of 4 images have results" in capsys.readouterr().err
    assert len(read(tmp_path / "out", "predictions.json")) == 2
    assert main([*command, "--resume"]) == 0
    shown = capsys.readouterr().out
    assert "2 of 4 images have results" in shown and "2 images predicted" in shown
    assert len({row["file_name"] for row in read(tmp_path / "out", "predictions.json")}) == 4


def test_results_are_in_the_runs_folder_unless_told_otherwise(run, pictures, capsys):
    assert main(["predict", str(run), str(pictures / "val"), "--no-pictures"]) == 0
    assert str(run / "predictions" / "predictions.json") in capsys.readouterr().out
    assert len(read(run / "predictions", "predictions.json")) == 4


def test_a_folder_that_is_no_run_is_a_mistake(pictures, tmp_path, capsys):
    assert main(["predict", str(tmp_path), str(pictures / "val"), "-o", str(tmp_path / "x")]) == 2
    assert "has no params.yaml" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "typo"), str(pictures / "val")]) == 2
    assert "is not there" in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "nothing is written for a model that is not there"
    assert main(["predict", str(tmp_path), "nowhere.png", "-o", str(tmp_path / "x")]) == 2
    assert "nowhere.png: no such file or folder" in capsys.readouterr().err


def test_eval_asks_for_a_run_or_an_export(tmp_path, capsys):
    assert main(["eval"]) == 2
    assert "--export" in capsys.readouterr().err
    assert main(["eval", "--export", str(tmp_path)]) == 2
    assert "is no export of hortus" in capsys.readouterr().err
