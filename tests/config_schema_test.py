"""The JSON schema of an experiment accepts the files that override it."""

import json
import pathlib

import pytest

from hortus import hyperparams
from hortus.core import exp_factory
from hortus.testing import reference_dir
from hortus.vision import registry_imports  # noqa: F401

jsonschema = pytest.importorskip("jsonschema", reason="comes with hortus[dev]")

OURS = pathlib.Path(__file__).resolve().parent.parent / "hortus" / "vision" / "experiments" / "yaml"
EXPERIMENTS = {
    "image_classification": "resnet_imagenet",
    "maskrcnn": "maskrcnn_resnetfpn_coco",
    "retinanet": "retinanet_resnetfpn_coco",
    "semantic_segmentation": "seg_deeplabv3plus_pascal",
    "video_classification": "video_classification_kinetics400",
}


def complaints(experiment: str, path: pathlib.Path) -> list[str]:
    """What the schema of the experiment has against a file, read as an editor would."""
    config = exp_factory.get_exp_config(experiment)
    schema = json.loads(json.dumps(hyperparams.json_schema(config, title=experiment)))
    # Through JSON, as a schema knows no tuples.
    values = json.loads(json.dumps(hyperparams.load_overrides(path).values))
    found = jsonschema.Draft202012Validator(schema).iter_errors(values)
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


@pytest.mark.parametrize(
    "path", sorted(OURS.rglob("*.yaml")), ids=lambda path: path.relative_to(OURS).as_posix()
)
def test_it_accepts_our_files(path):
    # All experiments of a folder have the same classes, hence the same keys and types.
    assert complaints(EXPERIMENTS[path.relative_to(OURS).parts[0]], path) == []


def test_it_accepts_the_files_of_the_reference():
    folder = reference_dir()
    entries = json.loads((folder / "yamls.json").read_text())
    found = {
        entry["path"]: complaints(entry["experiment"], folder / "yamls" / entry["path"])
        for entry in entries
    }
    # The one that lacks a comma, which `override` mends with a warning.
    mended = found.pop("retinanet/coco_mobiledetcpu_tpu.yaml")
    assert [one.split(":")[0] for one in mended] == ["$.task.model.input_size[0]"]
    assert {path: said for path, said in found.items() if said} == {}


@pytest.mark.parametrize("name", exp_factory.exp_names())
def test_the_schema_of_every_experiment_is_valid_and_accepts_its_own_values(name):
    config = exp_factory.get_exp_config(name)
    schema = json.loads(json.dumps(hyperparams.json_schema(config)))
    jsonschema.Draft202012Validator.check_schema(schema)
    values = json.loads(config.to_json())
    assert jsonschema.Draft202012Validator(schema).is_valid(values)


def test_it_finds_mistakes(tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text("task: {model: {num_clases: 3}}\ntrainer: {train_steps: many}\n")
    places = [one.split(":")[0] for one in complaints("resnet_imagenet", path)]
    assert places == ["$.task.model", "$.trainer.train_steps"]
