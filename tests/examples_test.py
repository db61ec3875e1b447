"""The examples run, and do what they say."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run_briefly(example: str, folder: pathlib.Path) -> str:
    """Runs `examples/EXAMPLE/demo.py` for two steps, and returns what it printed."""
    code = (
        "import pathlib, sys\n"
        f"sys.path.insert(0, {str(ROOT / 'examples' / example)!r})\n"
        "from hortus import engine\n"
        "engine.select('tensorflow')\n"
        "import demo\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "short = ['trainer.validation_interval=2,trainer.checkpoint_interval=2']\n"
        "demo.main(folder, train_images=16, overrides=['trainer.train_steps=2', *short])\n"
    )
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_trains_a_detector_and_writes_a_report(tmp_path):
    assert "AP50" in run_briefly("demo", tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count("data:image/png") >= 1, "pictures of detections"
    assert "examples/demo/demo.yaml" in text, "who set the values"
    assert (tmp_path / "run" / "best").is_dir()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here to look at the page with")
def test_a_report_renders_in_a_browser_without_errors(tmp_path):
    from hortus.reports import page, reports_test, runs

    path = tmp_path / "report.html"
    path.write_text(page.render(runs.RecordedRun(reports_test.write_run(tmp_path / "run"))))
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-sync", "--disable-component-update"]
    command += [f"--user-data-dir={tmp_path / 'browser'}", "--enable-logging=stderr", "--v=0"]
    command += ["--window-size=1000,1600", f"--screenshot={tmp_path / 'page.png'}", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    shown = np.asarray(Image.open(tmp_path / "page.png").convert("RGB"))
    assert shown.std() > 10, "the page is blank"
    # The embedded picture is a grey of 200; its pixels are on the page.
    assert (shown == 200).all(axis=-1).sum() >= 20


def test_the_classifier_trains_and_draws(tmp_path):
    assert "validation pictures are recognised" in run_briefly("shapes", tmp_path)
    for name in ("predictions.png", "confusion_matrix.png"):
        picture = np.asarray(Image.open(tmp_path / name))
        assert picture.std() > 10, f"{name} is blank"
    assert (tmp_path / "run" / "ckpt-2").is_dir()
    assert (tmp_path / "run" / "best").is_dir()


def test_the_starter_project_trains_is_evaluated_on_the_other_engine_and_used(tmp_path):
    from hortus.vision.data import shapes

    shutil.copytree(ROOT / "examples" / "starter", tmp_path, dirs_exist_ok=True)
    shapes.write_folders(tmp_path / "data", num_train=8, num_val=3, size=48)
    common = ["--experiment=starter", "--model_dir=run", "--config_file=starter.yaml"]
    short = "trainer.train_steps=2,trainer.validation_interval=2,trainer.checkpoint_interval=2"
    hortus = [sys.executable, "-m", "hortus.cli.main", "--import", "starter.task", "eval"]
    losses = []
    for command, engine in (
        ([sys.executable, "train.py", "--mode=train_and_eval", *common], "tensorflow"),
        ([*hortus, *common], "jax"),
    ):
        done = subprocess.run(
            [*command, f"--params_override={short}"],
            cwd=tmp_path,
            env={**os.environ, "KERAS_BACKEND": engine},
            capture_output=True,
            text=True,
            check=False,
        )
        text = done.stdout + done.stderr
        assert done.returncode == 0, text
        losses.append(float(re.findall(r"^eval step=2 .*validation_loss=(\S+)", text, re.M)[-1]))
    # The same weights and images; float32 sums in another order, and six digits are printed.
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    # What the README does with a trained model, in one process.
    done = subprocess.run(
        [sys.executable, "-c", USE, json.dumps(commands_after_training())],
        cwd=tmp_path,
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "starter" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    found = [
        json.loads((tmp_path / folder / "predictions.json").read_text(encoding="utf-8"))
        for folder in ("run/predictions", "starter.onnx_predictions")
    ]
    assert [len(rows) for rows in found] == [12, 12]
    for ours, exported in zip(*found, strict=True):
        assert ours["file_name"] == exported["file_name"]
        assert {each["class"] for each in ours["classes"]} <= set(shapes.CLASSES)
        scores, others = (
            {each["class"]: each["score"] for each in row["classes"]} for row in (ours, exported)
        )
        # Two runtimes in float32; six digits are written, and classes of one score may change
        # places at the end of the list.
        for name in scores.keys() & others.keys():
            assert scores[name] == pytest.approx(others[name], abs=1e-4)
    assert "largest difference to the model" in done.stdout.lower()


USE = """
import json, sys
from hortus.cli.main import main
for arguments in json.loads(sys.argv[1]):
    code = main(arguments)
    if code:
        sys.exit(f"{arguments}: {code}")
"""


def commands_after_training():
    """The arguments of the commands that the starter's README ends with."""
    text = (ROOT / "examples" / "starter" / "README.md").read_text(encoding="utf-8")
    lines = text[text.index("python train.py") :].splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("    hortus ")]
    used = {word for command in commands for word in command}
    assert {"report", "predict", "export", "onnx"} <= used
    return commands
