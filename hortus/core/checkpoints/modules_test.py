import os

import keras
import numpy as np
import pytest
import safetensors.numpy

from hortus import testing
from hortus.core.checkpoints import errors, values
from hortus.core.checkpoints.best_exporter import BestCheckpointExporter
from hortus.core.checkpoints.checkpoint import Checkpoint
from hortus.core.checkpoints.manager import CheckpointManager
from hortus.core.checkpoints.modules import load_modules


def test_on_jax():
    testing.run_under_engine("jax", __file__, select="every_place or one_module or precision")


class Model(keras.Model):
    def __init__(self, seed=0, classes=3, has_decoder=True):
        super().__init__()
        self.backbone = keras.Sequential(
            [
                keras.layers.Conv2D(4, 1),
                keras.layers.BatchNormalization(),
                keras.layers.Dropout(0.1),
            ]
        )
        self.backbone.build((None, 4, 4, 3))
        self.decoder = keras.layers.Dense(4) if has_decoder else None
        if has_decoder:
            self.decoder.build((None, 4))
        self.head = keras.layers.Dense(classes)
        self.head.build((None, 4))
        random = np.random.default_rng(seed)
        for weight in self.weights:
            weight.assign(random.standard_normal(tuple(weight.shape)))

    @property
    def checkpoint_items(self):
        return {"backbone": self.backbone, "decoder": self.decoder, "head": self.head}


def weights(part):
    return [values.read(w).tolist() for w in part.weights]


@pytest.fixture
def run(tmp_path):
    """A run with checkpoints of steps 1 and 2, an exported best one, and the last model."""
    for step in (1, 2):
        model = Model(seed=step)
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build(model.trainable_variables)
        checkpoint = Checkpoint(model=model, optimizer=optimizer)
        CheckpointManager(checkpoint, tmp_path, asynchronous=False).save(step)
    exporter = BestCheckpointExporter(tmp_path / "best", "accuracy", "higher")
    exporter.maybe_export_checkpoint(checkpoint, {"accuracy": 0.5}, 2)
    return tmp_path, model


@pytest.mark.parametrize(
    "place", [".", "ckpt-2", "best", "best/best_ckpt-2", "ckpt-2/weights.safetensors"]
)
def test_every_place_to_load_from(run, place):
    path, source = run
    model = Model()
    report = load_modules(model, path / place)
    assert weights(model) == weights(source)
    assert len(report.loaded) == len(model.weights) == 10
    assert not (report.skipped or report.missing or report.unused)


def test_an_older_checkpoint_can_be_named(run):
    path, _ = run
    model = Model()
    load_modules(model, path / "ckpt-1")
    assert weights(model) == weights(Model(seed=1))


@pytest.mark.parametrize("modules", ["backbone", ["backbone"]])
def test_one_module(run, modules):
    path, source = run
    model = Model(classes=7)
    before = weights(model.head), weights(model.decoder)
    report = load_modules(model, path, modules)
    assert weights(model.backbone) == weights(source.backbone)
    assert (weights(model.head), weights(model.decoder)) == before
    assert {row.name.split("/")[0] for row in report.loaded} == {"backbone"}
    assert report.loaded[0].source.startswith("model/backbone/")


def test_several_modules(run):
    path, source = run
    model = Model(classes=7)
    load_modules(model, path, ["backbone", "decoder"])
    assert weights(model.backbone) == weights(source.backbone)
    assert weights(model.decoder) == weights(source.decoder)


def test_other_classes_are_skipped_with_both_shapes(run):
    path, source = run
    model = Model(classes=7)
    before = weights(model.head)
    report = load_modules(model, path)
    assert weights(model.backbone) == weights(source.backbone)
    assert weights(model.head) == before
    skipped = {row.name: (row.shape, row.file_shape) for row in report.skipped}
    assert skipped == {"head/kernel": ((4, 7), (4, 3)), "head/bias": ((7,), (3,))}


def test_what_only_one_side_has_is_reported(run):
    path, _ = run
    report = load_modules(Model(has_decoder=False), path)
    assert {row.name for row in report.unused} == {"decoder/kernel", "decoder/bias"}
    bare = Checkpoint(model=Model(has_decoder=False)).save(path / "bare")
    report = load_modules(Model(), bare)
    assert {row.name for row in report.missing} == {"decoder/kernel", "decoder/bias"}


def test_the_state_of_seeds_is_not_loaded(run):
    path, _ = run
    model = Model()
    seed = model.backbone.layers[-1].seed_generator.state
    before = values.read(seed).tolist()
    load_modules(model, path)
    assert values.read(seed).tolist() == before


def test_an_unknown_module_is_told_with_near_names(run):
    path, _ = run
    with pytest.raises(errors.CheckpointError, match=r"unknown module 'backbon'.*backbone"):
        load_modules(Model(), path, "backbon")
    with pytest.raises(errors.CheckpointError, match="decoder"):
        load_modules(Model(has_decoder=False), path, ["decoder"])
    with pytest.raises(errors.CheckpointError, match="no module is named"):
        load_modules(Model(), path, [])


def test_nothing_matched_is_an_error(run, tmp_path):
    path, _ = run
    with pytest.raises(errors.CheckpointError, match=r"nothing could be loaded.*all shapes differ"):
        load_modules(Model(classes=7), path, "head")
    other = Checkpoint(model=[keras.layers.Dense(1)]).save(tmp_path / "other")
    with pytest.raises(errors.CheckpointError, match=r"nothing could be loaded.*no name agrees"):
        load_modules(Model(), other)


def test_an_unbuilt_model_is_told(run):
    path, _ = run
    with pytest.raises(errors.CheckpointError, match="build the model before"):
        load_modules(keras.Sequential([keras.layers.Dense(1)]), path)


def test_a_module_that_another_model_had_elsewhere(tmp_path):
    class Other(keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder = [Model(seed=5).backbone]

        @property
        def checkpoint_items(self):
            return {"backbone": self.encoder[0]}

    other = Other()
    path = Checkpoint(model=other).save(tmp_path / "a")
    for place in (path, os.path.join(path, "weights.safetensors")):
        model = Model()
        report = load_modules(model, place, "backbone")
        assert report.loaded[0].source.startswith("model/encoder/0/")
        assert weights(model.backbone) == weights(other.encoder[0])


@pytest.mark.parametrize("prefix", ["", "model/", "backbone/", "model/backbone/"])
def test_a_plain_safetensors_file(tmp_path, prefix):
    source = Model(seed=5).backbone
    names = ["conv2d-0/kernel", "conv2d-0/bias"]
    names += [f"batch_normalization-0/{part}" for part in ("gamma", "beta")]
    names += [f"batch_normalization-0/moving_{part}" for part in ("mean", "variance")]
    tensors = {
        f"{prefix}layers/{name}": values.read(weight)
        for name, weight in zip(names, source.weights, strict=True)
    }
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file(tensors, str(path))
    model = Model()
    if "backbone" in prefix:
        load_modules(model, path, "backbone")
        assert weights(model.backbone) == weights(source)
    else:
        load_modules(model.backbone, path)
        assert weights(model.backbone) == weights(source)


def test_another_precision(tmp_path):
    weight = np.array([1 / 3, 2 / 3], "float32")
    layer = keras.layers.Rescaling(1.0)
    layer.scale_weight = keras.Variable(np.zeros(2), dtype="bfloat16")
    safetensors.numpy.save_file({"scale_weight": weight}, str(tmp_path / "a.safetensors"))
    load_modules(layer, tmp_path / "a.safetensors")
    assert values.read(layer.scale_weight).tolist() == weight.astype("bfloat16").tolist()
