import json
import pathlib

import numpy as np
import pytest
import yaml

from hortus.core import exp_factory, task_factory
from hortus.core.checkpoints import errors, load_modules, tensor_file
from hortus.testing import reference_dir, run_under_engine, shared_file
from hortus.vision import pretrained
from hortus.vision.weights.catalog import KNOWN

NAME = "torchvision/mobilenet_v2"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A file as torchvision's, of random weights; safetensors, as PyTorch's users write them."""
    shapes = json.loads((reference_dir() / "weights" / "torch_models.json").read_text())
    rng = np.random.default_rng(0)
    tensors = {}
    for key, (shape, dtype) in shapes[NAME]["tensors"].items():
        if key.endswith("num_batches_tracked"):
            tensors[key] = np.zeros(shape, "int64")
            continue
        fan = max(1, int(np.prod(shape[1:])))
        value = (
            rng.normal(size=shape) / np.sqrt(fan) if len(shape) > 1 else rng.uniform(0.5, 1, shape)
        )
        tensors[key] = value.astype(dtype)
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    tensor_file.write_tensors(str(path), tensors, {"format": "pt"})
    return path


def test_a_file_is_recognized(file):
    found = pretrained.inspect(file)
    assert found.kind == "PyTorch state dict"
    assert found.tensors == 314
    assert found.parameters == 3_504_872
    assert [known.name for known in found.fits] == [NAME]
    assert f"fits {NAME}" in found.summary()


def test_a_file_becomes_a_checkpoint_that_can_be_verified(file, tmp_path):
    folder, settings, origin = pretrained.take_over(file, tmp_path / "taken")
    told = json.loads(pathlib.Path(origin).read_text())
    assert told["model"] == NAME
    assert len(told["sha256"]) == 64
    assert pretrained.verify(folder) < 1e-6

    # The settings make an experiment's model the same; the checkpoint starts it without a word.
    config = exp_factory.get_exp_config("image_classification")
    config.override(yaml.safe_load(pathlib.Path(settings).read_text()))
    config.override({"task": {"model": {"num_classes": 1000, "input_size": [224, 224, 3]}}})
    model = task_factory.get_task(config.task).build_model()
    report = load_modules(model, folder)
    assert len(report.loaded) == len(model.weights)
    assert model.backbone.padding == "symmetric"

    # A change of the weights is noticed.
    changed = {**told, "answer": [x * 1.01 + 0.1 for x in told["answer"]]}
    pathlib.Path(origin).write_text(json.dumps(changed))
    with pytest.raises(errors.CheckpointError, match="answers otherwise"):
        pretrained.verify(folder)


def test_other_settings_are_warned_about(file):
    config = exp_factory.get_exp_config("image_classification")
    model = {"num_classes": 5, "input_size": [64, 64, 3], "backbone": {"type": "mobilenet"}}
    config.override({"task": {"model": model}})
    built = task_factory.get_task(config.task).build_model()
    with pytest.warns(errors.CheckpointWarning, match="padding is 'same', but the weights were"):
        report = load_modules(built, file, "backbone")
    assert len(report.notes) == 2


def test_unknown_names_are_refused(file):
    with pytest.raises(errors.CheckpointError, match="hortus weights list"):
        pretrained.choose(file, "torchvision/nothing")
    assert pretrained.choose(file) is KNOWN[NAME]


def test_a_real_file_is_recognized_and_taken_over(tmp_path):
    path = shared_file("weights/mobilenet_v2-b0353104.pth")
    folder, *_ = pretrained.take_over(path, tmp_path / "real")
    assert pretrained.verify(folder) < 1e-6


@pytest.mark.slow
def test_on_jax():
    run_under_engine("jax", __file__, select="becomes or recognized")
