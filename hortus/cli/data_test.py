"""`hortus data`, on a few tiny images."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from hortus.cli import progress_bar
from hortus.cli.main import main
from hortus.core import base_task, exp_factory, task_factory
from hortus.core import config_definitions as cfg
from hortus.vision.dataloaders.conftest import make_image

NAMES = ("ant", "bee", "cat")


@pytest.fixture
def folder(tmp_path):
    """Two splits of three classes, sound."""
    number = 0
    for split, count in (("train", 4), ("val", 2)):
        for name in NAMES:
            (tmp_path / split / name).mkdir(parents=True)
            for i in range(count):
                path = tmp_path / split / name / f"{i}.png"
                path.write_bytes(tf.io.encode_png(make_image(number)).numpy())
                number += 1
    return tmp_path


def arguments(folder, *more, num_classes=3):
    settings = [f"task.model.num_classes={num_classes}", "task.model.input_size=[16,16,3]"]
    for name, split in (("train_data", "train"), ("validation_data", "val")):
        settings += [
            f"task.{name}.input_path={folder / split}",
            f"task.{name}.file_type=folder",
            f"task.{name}.global_batch_size=2",
        ]
    return ["image_classification", *settings, *more]


def test_sound_data_has_no_faults(folder, capsys):
    assert main(["data", "check", *arguments(folder)]) == 0
    shown = capsys.readouterr().out
    assert "train_data: 12 images of 3 classes" in shown
    assert "validation_data: 6 images of 3 classes" in shown
    assert "heights 24 to 24, widths 32 to 32" in shown
    assert shown.endswith("Found nothing wrong.\n")


def test_faults_are_told_with_exit_code_1(folder, capsys):
    (folder / "train" / "ant" / "0.png").write_bytes(b"no image")
    assert main(["data", "check", *arguments(folder)]) == 1
    shown = capsys.readouterr().out
    assert "error: train_data: images that cannot be read: 1\n" in shown
    assert str(folder / "train" / "ant" / "0.png") in shown
    assert shown.endswith("Found 1 error.\n")


def test_the_experiment_may_be_an_option_and_must_be_named(folder, capsys):
    name, *settings = arguments(folder)
    assert main(["data", "check", "-e", name, *settings]) == 0
    capsys.readouterr()
    assert main(["data", "check", *settings]) == 2
    assert "which experiment?" in capsys.readouterr().err


@dataclasses.dataclass
class ToollessConfig(cfg.TaskConfig):
    """Of a task that says nothing of its data."""


@exp_factory.register_config_factory("toolless")
def toolless():
    """An experiment without tools."""
    return cfg.ExperimentConfig(task=ToollessConfig())


def test_a_task_without_tools_is_a_mistake(capsys):
    class ToollessTask(base_task.Task):
        def build_model(self):
            raise AssertionError("tools need no model")

        build_inputs = build_model

    task_factory.register_task_cls(ToollessConfig)(ToollessTask)
    assert main(["data", "check", "toolless"]) == 2
    assert "ToollessTask does not say how its data is checked" in capsys.readouterr().err


def test_show_writes_a_sheet(folder, capsys):
    sheet = folder / "sheets" / "train.png"
    assert main(["data", "show", *arguments(folder), "-o", str(sheet), "-n", "5"]) == 0
    assert "5 examples of task.train_data" in capsys.readouterr().out
    with Image.open(sheet) as picture:
        pixels = np.asarray(picture)
    assert pixels.shape[2] == 3 and pixels.shape[1] > 5 * 112
    assert pixels.std() > 10
    assert list(sheet.parent.iterdir()) == [sheet]


def test_show_of_data_that_is_not_named(folder, capsys):
    words = [word for word in arguments(folder) if "input_path" not in word]
    assert main(["data", "show", *words]) == 2
    assert "task.train_data names no data" in capsys.readouterr().err


def records_of(folder, pattern):
    files = sorted(str(path) for path in pathlib.Path(folder).glob(pattern))
    records = tf.data.TFRecordDataset(files).as_numpy_iterator()
    return [tf.train.Example.FromString(record).features.feature for record in records]


def test_records_hold_what_the_folder_holds(folder, capsys):
    output = folder / "records"
    command = ["data", "make-tfrecord", *arguments(folder), "-o", str(output), "--shards", "2"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "12 examples in" in shown and f"{output}/validation-*.tfrecord" in shown
    validation = records_of(output, "validation-*")
    # In the order of the folder.
    paths = sorted((folder / "val").glob("*/*.png"))
    assert [one["image/encoded"].bytes_list.value[0] for one in validation] == [
        path.read_bytes() for path in paths
    ]
    labels = [one["image/class/label"].int64_list.value[0] for one in validation]
    assert [NAMES[label] for label in labels] == [path.parent.name for path in paths]
    assert [one["image/class/text"].bytes_list.value[0].decode() for one in validation] == [
        path.parent.name for path in paths
    ]
    train = [one["image/encoded"].bytes_list.value[0] for one in records_of(output, "train-*")]
    paths = sorted((folder / "train").glob("*/*.png"))
    assert sorted(train) == sorted(path.read_bytes() for path in paths)
    assert train != [path.read_bytes() for path in paths]
    about = json.loads((output / "hortus_dataset.json").read_text())
    assert about["class_names"] == list(NAMES)
    assert sum(about["examples_per_file"].values()) == 18
    # What was written can be checked, and read, in place of the folder.
    again = arguments(folder)
    for name, split in (("train_data", "train"), ("validation_data", "validation")):
        again += [
            f"task.{name}.input_path={output}/{split}-*.tfrecord",
            f"task.{name}.file_type=tfrecord",
        ]
    assert main(["data", "check", *again]) == 0
    assert "  bee        4  #" in capsys.readouterr().out


def test_what_is_there_stays(folder, capsys):
    output = folder / "records"
    command = ["data", "make-tfrecord", *arguments(folder), "-o", str(output)]
    assert main(command) == 0
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    assert main(command) == 2
    assert "is there already" in capsys.readouterr().err
    # A failure in the middle leaves the old files as they were, and nothing of its own.
    broken = folder / "val" / "cat" / "1.png"
    sound = broken.read_bytes()
    broken.write_bytes(b"no image")
    assert main([*command, "--force"]) == 2
    assert str(broken) in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before
    assert not list(folder.glob(".records*"))
    # Files of somebody else's are never deleted.
    broken.write_bytes(sound)
    (output / "notes.txt").write_text("mine")
    assert main([*command, "--force"]) == 2
    assert "notes.txt" in capsys.readouterr().err
    (output / "notes.txt").unlink()
    assert main([*command, "--force", "--split", "validation"]) == 0
    assert sorted(path.name for path in output.iterdir()) == [
        "hortus_dataset.json",
        "validation-00000-of-00001.tfrecord",
    ]


def test_bad_images_can_be_left_out_of_records(folder):
    (folder / "val" / "cat" / "1.png").write_bytes(b"no image")
    output = folder / "records"
    skip = "task.validation_data.skip_bad_records=true"
    options = ["-o", str(output), "--split", "validation"]
    assert main(["data", "make-tfrecord", *arguments(folder, skip), *options]) == 0
    assert len(records_of(output, "validation-*")) == 5


def test_bench_tells_a_rate(folder, capsys):
    assert main(["data", "bench", *arguments(folder), "--seconds", "0.2"]) == 0
    assert "examples/s" in capsys.readouterr().out


class Stream:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return False


def test_progress_in_a_log_is_lines():
    stream = Stream()
    with progress_bar.ProgressBar(stream, line_seconds=0.0) as bar:
        bar("reading", 0, 10)
        bar("reading", 5, 10)
    assert stream.text.splitlines()[-1].startswith("reading: 5/10, ")


def test_progress_on_a_terminal_is_a_bar():
    stream = Stream()
    with progress_bar.ProgressBar(stream, terminal=True) as bar:
        bar("reading", 5, 10)
        bar("reading", 6, None)
    assert "reading" in stream.text and "6/10" in stream.text
