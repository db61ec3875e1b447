"""Every extension point, from one file outside of the package, through the command line.

All commands run in one process: what is slow is to import TensorFlow.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.slow  # a training, an export and predictions in one process

PLUGIN = pathlib.Path(__file__).parent / "plugin" / "garden.py"
LISTED = {
    "experiments": "garden",
    "backbones": "fern",
    "decoders": "moss",
    "heads": "Bud",
    "models": "garden.Plant",
    "tasks": "GardenConfig",
    "losses": "garden.Losses",
    "metrics": "blossoms",
    "augmentations": "night",
    "file_types": "boxes_txt",
    "optimizers": "slow",
    "schedules": "season",
    "actions": "diary",
    "summaries": "csv",
    "sections": "Weather",
    "formats": "pressed",
    "commands": "water",
}
COMMANDS = {
    "water": ["--import", "garden", "water", "--times", "2"],
    "check": ["--import", "garden", "data", "check", "garden"],
    "train": ["train", "garden", "-d", "run", "--import", "garden"],
    "report": ["report", "run", "--import", "garden"],
    "export": ["--import=garden", "export", "run", "-f", "pressed", "-o", "pressed"],
    "predict": ["--import", "garden", "predict", "run", "leaves/val", "--no-pictures"],
    **{kind: ["--import", "garden", "list", kind, name] for kind, name in LISTED.items()},
}
SCRIPT = """
import contextlib, io, json, sys
from hortus.cli.main import main
results = {}
for name, arguments in json.load(open("commands.json")).items():
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = main(arguments)
    results[name] = [code, output.getvalue()]
json.dump(results, open("results.json", "w"))
"""


@pytest.fixture(scope="module")
def garden(tmp_path_factory):
    """The folder in which all commands have run, and (exit code, output) of each."""
    folder = tmp_path_factory.mktemp("garden")
    shutil.copy(PLUGIN, folder / "garden.py")
    for split, left in (("train", 8), ("val", 6)):
        leaves = folder / "leaves" / split
        leaves.mkdir(parents=True)
        lines = []
        for number in range(2):
            pixels = np.zeros((32, 32, 3), np.uint8)
            pixels[4 + number : 20, left:24] = 200
            Image.fromarray(pixels).save(leaves / f"{number}.png")
            lines.append(f"{number}.png 32 32 {4 + number} {left} 20 24\n")
        (leaves / "boxes.txt").write_text("".join(lines))
    (folder / "commands.json").write_text(json.dumps(COMMANDS))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=folder,
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((folder / "results.json").read_text())
    failed = {name: result for name, result in results.items() if result[0] != 0}
    assert not failed, f"{failed}\n{done.stderr}"
    return folder, {name: output for name, (_, output) in results.items()}


@pytest.fixture(scope="module")
def traces(garden):
    return set((garden[0] / "trace.txt").read_text().splitlines())


@pytest.fixture(scope="module")
def evaluation(garden):
    """What the one evaluation has measured."""
    lines = (garden[0] / "run" / "metrics.jsonl").read_text().splitlines()
    (found,) = (row for row in map(json.loads, lines) if "blossoms" in json.dumps(row))
    return found


@pytest.mark.parametrize(("kind", "name"), LISTED.items())
def test_it_is_listed(garden, kind, name):
    line = garden[1][kind].splitlines()[0]
    assert line.startswith(name)
    assert len(line.split()) > 1, "no description"


@pytest.mark.parametrize("part", ["backbone", "decoder", "head", "model"])
def test_a_part_of_the_model_is_built(traces, part):
    assert part in traces


def test_a_loss_is_what_is_trained(evaluation):
    logs = flat(evaluation)
    # The weight of boxes is the default of the config; six digits of float32 sums.
    usual = logs["cls_loss"] + 50.0 * logs["box_loss"]
    assert logs["model_loss"] == pytest.approx(3.0 * usual, rel=1e-4)


def test_a_metric_is_measured(evaluation):
    assert 0 <= flat(evaluation)["blossoms"] <= 5


def test_an_augmentation_is_applied(traces):
    assert "augmentation, has_boxes=True" in traces


def test_files_are_read(garden):
    folder, outputs = garden
    assert "2 images" in outputs["check"]
    assert json.loads((folder / "run" / "class_names.json").read_text()) == ["leaf"]


def test_a_task_has_tools_of_its_own(garden):
    assert "note: enough light" in garden[1]["check"]
    assert "Found nothing wrong." in garden[1]["check"]


def test_an_optimizer_and_an_action_are_used(garden):
    lines = (garden[0] / "run" / "diary.txt").read_text().splitlines()
    assert len(lines) == 3, "two loops of training and an evaluation"
    assert all(line.startswith("Slow ") for line in lines)


def test_a_schedule_and_a_summary_are_used(garden):
    rows = (garden[0] / "run" / "train" / "summary.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    rates = {int(step): float(value) for name, step, value in cells if name == "learning_rate"}
    assert rates == pytest.approx({1: 0.001 / 2, 2: 0.001 / 3})  # before the next step
    assert "blossoms" in (garden[0] / "run" / "validation" / "summary.csv").read_text()


def test_a_section_is_in_the_report(garden):
    text = (garden[0] / "run" / "report.html").read_text()
    assert "<h2>Weather</h2>" in text and "sunny" in text


def test_a_format_is_exported(garden):
    assert (garden[0] / "pressed" / "paper.txt").read_text() == "two sheets\n"
    description = json.loads((garden[0] / "pressed" / "hortus_export.json").read_text())
    assert description["format"] == "pressed"


def test_a_command_is_run(garden):
    assert garden[1]["water"] == "drip drip\n"


def test_a_task_of_ones_own_predicts(garden):
    folder, outputs = garden
    path = os.path.join("run", "predictions", "predictions.json")
    assert path in outputs["predict"]
    assert {row["category_name"] for row in json.loads((folder / path).read_text())} == {"leaf"}


def flat(row):
    """All numbers of nested logs, by their last name."""
    found = {}
    for key, value in row.items():
        found |= flat(value) if isinstance(value, dict) else {key: value}
    return found
