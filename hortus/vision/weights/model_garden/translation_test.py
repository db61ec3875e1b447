"""Checkpoints as the Model Garden writes them, in our models: what these then answer.

The structures are those of real checkpoints; the values follow from the variables' keys, so that no
two layers are alike and one in another's place shows.
"""

import functools
import gzip
import importlib.util
import json
import types

import keras
import numpy as np
import pytest

from hortus.core import exp_factory, task_factory
from hortus.core.checkpoints import errors, load_modules, modules
from hortus.core.checkpoints.tf2.object_graph import Node, ObjectGraph
from hortus.testing import reference_dir, run_under_engine
from hortus.vision import registry_imports
from hortus.vision.weights.model_garden import families
from hortus.vision.weights.model_garden.families import Counted, Named
from hortus.vision.weights.rules import Rules

CASES = (
    "deeplab",
    "mask_scoring",
    "mobiledet_dsp",
    "mobilenet_v3",
    "mobilenet_v4_hybrid",
    "resnet_rs_ema",
    "retinanet_fpn",
    "retinanet_levels_apart",
    "retinanet_nasfpn",
    "revnet38",
    "spinenet",
    "spinenet_mobile",
    "vit",
)


@functools.cache
def reference(name):
    """A module of the reference folder."""
    path = reference_dir() / "weights" / "model_garden" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"model_garden_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def structures():
    path = reference_dir() / "weights" / "model_garden" / "structures.json.gz"
    return json.loads(gzip.decompress(path.read_bytes()))


@functools.cache
def figures():
    return np.load(reference_dir() / "weights" / "model_garden" / "outputs.npz")


def graph_of(name):
    shapes = {entry["key"]: tuple(entry["shape"]) for entry in structures()[name] if "key" in entry}
    bundle = types.SimpleNamespace(
        prefix=f"/checkpoints/{name}/ckpt-1",
        shape=shapes.__getitem__,
        read=lambda key: reference("values").value(key, shapes[key]),
    )
    nodes = [
        Node(
            entry["children"],
            entry.get("key", ""),
            entry.get("name", ""),
            {s: {int(w): n for w, n in of.items()} for s, of in entry.get("slots", {}).items()},
        )
        for entry in structures()[name]
    ]
    return ObjectGraph(bundle, nodes)


def build(name):
    registry_imports.load_tasks()
    experiment = reference("cases").CASES[name][0]
    config = exp_factory.get_exp_config(experiment)
    config.override(reference("cases").override(name))
    task = task_factory.get_task(config.task)
    if keras.backend.backend() != "jax":
        return task.build_model()
    # Compiling an initializer for each shape would take longer than all the rest.
    with keras.StatelessScope(initialize_variables=False):
        model = task.build_model()
    keras.utils.clear_session()  # or Keras would give the variables values later
    return model


def load(monkeypatch, name, model, parts="all", **kwargs):
    monkeypatch.setattr(modules, "open_source", lambda path: graph_of(name))
    return load_modules(model, f"/checkpoints/{name}/ckpt-1", parts, **kwargs)


def flat(outputs, prefix):
    if isinstance(outputs, dict):
        outputs = outputs.items()
    elif isinstance(outputs, (list, tuple)):
        outputs = enumerate(outputs)
    else:
        return {prefix.rstrip("/"): keras.ops.convert_to_numpy(outputs)}
    return {k: v for key, o in outputs for k, v in flat(o, f"{prefix}{key}/").items()}


class Head(keras.Model):
    """What RetinaNet's head says, without the detections."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def call(self, images):
        features = self.model.backbone(images, training=False)
        return self.model.head(self.model.decoder(features, training=False), training=False)


def answers(name, model):
    images = reference("values").images(reference("cases").CASES[name][1])
    is_detector = hasattr(model, "anchors")
    if keras.backend.backend() == "jax":  # slow unless compiled
        if is_detector:
            return flat(Head(model).predict(images, verbose=0), "head/")
        return flat(model.predict(images, verbose=0), "model/")
    if is_detector:
        return flat(Head(model)(images), "head/")
    return flat(model(images, training=False), "model/")


def difference(name, model, which="weights"):
    """The largest difference from what the Model Garden answers, relative to the output's scale."""
    worst = 0.0
    found = answers(name, model)
    assert found
    for output, array in found.items():
        key = f"{name}/{which}/{output}"
        index = np.linspace(0, array.size - 1, 48).astype(int)
        off = np.abs(array.ravel()[index] - figures()[key]).max()
        worst = max(worst, off / figures()[f"{key}/absmax"])
    return worst


# float32 through up to a hundred layers, on other kernels than the reference's.
TOLERANCE = 1e-4


@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_loads_whole_and_answers_alike(monkeypatch, name):
    model = build(name)
    report = load(monkeypatch, name, model)
    assert len(report.loaded) == len(model.weights)
    assert not report.skipped + report.missing + report.unused
    assert not any(row.by_order for row in report.loaded)
    assert difference(name, model) < TOLERANCE


def test_averages_are_loaded_on_request(monkeypatch):
    name = "resnet_rs_ema"
    model = build(name)
    report = load(monkeypatch, name, model, averages=True)
    assert "averages" in report.summary()
    assert difference(name, model, "averages") < TOLERANCE
    assert difference(name, model, "weights") > 100 * TOLERANCE


def test_a_checkpoint_without_averages_says_so(monkeypatch):
    with pytest.raises(errors.CheckpointError, match="holds no moving averages"):
        load(monkeypatch, "mobilenet_v3", build("mobilenet_v3"), averages=True)


def test_modules_are_loaded_by_themselves(monkeypatch):
    name = "retinanet_fpn"
    model = build(name)
    for part in ("backbone", "decoder", "head"):
        report = load(monkeypatch, name, model, part)
        assert not report.skipped + report.missing + report.unused, part
    assert difference(name, model) < TOLERANCE


def test_a_backbone_goes_into_another_model(monkeypatch):
    detector = build("retinanet_nasfpn")
    report = load(monkeypatch, "retinanet_fpn", detector, "backbone")
    assert len(report.loaded) == len(detector.backbone.weights)


def test_another_depth_is_refused_and_named(monkeypatch):
    with pytest.raises(errors.CheckpointError, match="written by another model"):
        load(monkeypatch, "retinanet_fpn", build("resnet_rs_ema"), "backbone")


def swap(table, first, second):
    assert first in table and second in table
    return {**table, first: table[second], second: table[first]}


def mutated(family, first, second):
    """A family with two entries of its table exchanged."""
    if isinstance(family, Named):
        rules = [Rules(swap(rules.table, first, second)) for rules in family.rules]
        return Named(tuple(rules), family.numbers)
    parts = list(family.parts)
    index = next(i for i, part in enumerate(parts) if {first, second} <= set(part.layers))
    layers = list(parts[index].layers)
    i, j = layers.index(first), layers.index(second)
    layers[i], layers[j] = layers[j], layers[i]
    parts[index] = families.Part(parts[index].ours, tuple(layers))
    return Counted(tuple(parts))


@pytest.mark.parametrize(
    ("name", "family", "first", "second"),
    [
        (
            "retinanet_fpn",
            "RetinaNetHead",
            "towers/class/norms/norm{i}_level{l}",
            "towers/box/norms/norm{i}_level{l}",
        ),
        (
            "retinanet_fpn",
            "RetinaNetHead",
            "towers/class/convs/{i}/convs/shared",
            "towers/box/convs/{i}/convs/shared",
        ),
        ("deeplab", "ASPP", "layers/pyramid/plain_norm", "layers/pyramid/pool_norm"),
        ("vit", "VisionTransformer", "layers/block{i}/attention_norm", "layers/block{i}/mlp_norm"),
    ],
)
def test_a_table_with_look_alikes_exchanged_is_noticed(monkeypatch, name, family, first, second):
    model = build(name)
    monkeypatch.setitem(
        families.FAMILIES, family, mutated(families.FAMILIES[family], first, second)
    )
    load(monkeypatch, name, model)
    assert difference(name, model) > 10 * TOLERANCE


def test_an_order_by_depth_is_noticed(monkeypatch):
    # The layers of the searched pyramid as the file counts them, instead of as they were made.
    from hortus.vision.weights.model_garden import translation

    def by_depth(graph, node):
        found = original(graph, node)
        places = {child: i for i, child in enumerate(graph.nodes[node].children.values())}
        return sorted(found, key=lambda unit: (unit.kind, places[unit.node]))

    original = translation.units
    monkeypatch.setattr(translation, "units", by_depth)
    model = build("retinanet_nasfpn")
    report = load(monkeypatch, "retinanet_nasfpn", model)
    assert report.skipped or difference("retinanet_nasfpn", model) > 100 * TOLERANCE


@pytest.mark.slow
def test_on_jax():
    run_under_engine("jax", __file__, select="answers_alike or averages_are", timeout=900)
