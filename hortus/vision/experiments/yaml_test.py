"""YAML files: the 60 of the existing system load as they are, and ours are right."""

import json
import pathlib
import re
import warnings

import pytest

from hortus import hyperparams
from hortus.core import exp_parser
from hortus.testing import reference_dir
from hortus.vision import experiments

assert experiments  # registers the experiments

OURS = sorted((pathlib.Path(__file__).parent / "yaml").glob("*/*.yaml"))
MALFORMED = "retinanet/coco_mobiledetcpu_tpu.yaml"


def _reference_files() -> list[str | None]:
    try:
        entries = json.loads((reference_dir() / "yamls.json").read_text())
    except pytest.skip.Exception:
        return [None]  # one test remains, to be skipped with the reason
    return [entry["path"] for entry in entries]


def load(experiment: str, path: pathlib.Path) -> tuple:
    options = exp_parser.ParseConfigOptions(experiment=experiment, config_file=str(path))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        config = exp_parser.parse_config(options)
    return config, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("path", _reference_files())
def test_reference_file_loads_strictly_and_validates(path):
    folder = reference_dir()
    entries = json.loads((folder / "yamls.json").read_text())
    experiment = next(entry["experiment"] for entry in entries if entry["path"] == path)
    file = folder / "yamls" / path
    config, _ = load(experiment, file)
    assert any(str(file) in str(leaf.owner.origin(leaf.name)) for leaf in hyperparams.walk(config))


def test_all_sixty_reference_files_are_tried():
    folder = reference_dir()
    listed = {entry["path"] for entry in json.loads((folder / "yamls.json").read_text())}
    present = {str(p.relative_to(folder / "yamls")) for p in (folder / "yamls").glob("*/*.yaml")}
    assert len(listed) == 60
    assert listed == present


def test_a_forgotten_comma_is_mended_with_a_warning_that_names_file_and_line():
    file = reference_dir() / "yamls" / MALFORMED
    config, messages = load("retinanet_mobile_coco", file)
    assert config.task.model.input_size == [320, 320, 3]
    line = 1 + next(
        number for number, text in enumerate(file.read_text().splitlines()) if "320 320" in text
    )
    assert any("input_size" in message and f"{file}:{line}" in message for message in messages)


def test_fields_without_effect_warn():
    folder = reference_dir() / "yamls"
    _, messages = load(
        "resnet_imagenet", folder / "image_classification" / "imagenet_resnet101_deeplab_tpu.yaml"
    )
    assert any("aug_policy" in message and "aug_type" in message for message in messages)


def test_we_ship_a_file_for_every_task():
    folders = {path.parent.name for path in OURS}
    assert folders == {
        "image_classification",
        "retinanet",
        "maskrcnn",
        "semantic_segmentation",
        "video_classification",
    }


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_our_file_is_right(path):
    text = path.read_text()
    experiment = re.search(r"^# experiment: (\w+)$", text, re.MULTILINE)[1]
    command = text.split("# experiment:")[0]
    assert text.startswith("# hortus train ")
    assert f"--experiment={experiment} " in command
    assert f"--config_file=hortus/vision/experiments/yaml/{path.parent.name}/{path.name}" in command
    assert "Result:" in text

    config, messages = load(experiment, path)
    assert not messages
    trainer = config.trainer
    schedule = trainer.optimizer_config.learning_rate.get()
    warmup = trainer.optimizer_config.warmup.get()
    assert warmup is None or warmup.warmup_steps < trainer.train_steps / 5
    assert trainer.summary_interval % trainer.steps_per_loop == 0
    if hasattr(schedule, "boundaries"):
        assert schedule.boundaries == sorted(schedule.boundaries)
        assert schedule.boundaries[-1] < trainer.train_steps
    elif not getattr(schedule, "staircase", False):
        assert schedule.decay_steps == trainer.train_steps


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_our_file_states_only_what_differs(path):
    experiment = re.search(r"^# experiment: (\w+)$", path.read_text(), re.MULTILINE)[1]
    bare = exp_parser.parse_config(exp_parser.ParseConfigOptions(experiment=experiment))
    stated = hyperparams.load_overrides(str(path)).values
    repeated = [name for name, value in _leaves(stated) if bare.get(name) == value]
    assert not repeated


def _leaves(values: dict, path: str = ""):
    for key, value in values.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from _leaves(value, name)
        else:
            yield name, tuple(value) if key == "feature_shape" else value
