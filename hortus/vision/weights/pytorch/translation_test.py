"""PyTorch models in ours: every tensor finds its place, and the answers are the same."""

import functools
import json

import keras
import numpy as np
import pytest

from hortus.core import exp_factory, task_factory
from hortus.core.checkpoints import errors, load_modules, modules
from hortus.core.checkpoints.state_dict import StateDict
from hortus.testing import reference_dir, run_under_engine, shared_file
from hortus.vision import registry_imports
from hortus.vision.weights import catalog

# Values to the largest magnitude: float32 through up to a hundred layers, on other kernels.
TOLERANCE = 1e-4
MODELS = (
    "timm/deit_small_patch16_224",
    "timm/efficientnet_b0",
    "timm/mobilenetv2_100",
    "timm/mobilenetv3_large_100",
    "timm/mobilenetv4_conv_small",
    "timm/resnet50",
    "timm/resnetrs50",
    "timm/tf_efficientnet_b0",
    "timm/vit_tiny_patch16_224",
    "torchvision/efficientnet_b0",
    "torchvision/mobilenet_v2",
    "torchvision/mobilenet_v3_large",
    "torchvision/resnet18",
    "torchvision/resnet50",
    "torchvision/vit_b_16",
)
QUICK = (
    "timm/resnetrs50",
    "timm/tf_efficientnet_b0",
    "torchvision/mobilenet_v2",
    "torchvision/resnet18",
)


@functools.cache
def described():
    return json.loads((reference_dir() / "weights" / "torch_models.json").read_text())


@functools.cache
def outputs():
    return np.load(reference_dir() / "weights" / "torch_outputs.npz")


def value(name, shape):
    """The value of a tensor by the rule of the reference; see the README there."""
    count = int(np.prod(shape, dtype=np.int64))
    k = np.arange(count, dtype=np.float64) % 9973
    last = name.rsplit(".", 1)[-1]
    if last == "running_var":
        flat = 1 + 0.5 * np.sin(k) ** 2
    elif last == "running_mean":
        flat = 0.1 * np.cos(2 * k)
    elif last == "weight" and len(shape) == 1:
        flat = 1 + 0.1 * np.cos(k)
    elif last == "bias":
        flat = 0.1 * np.sin(k + 1)
    elif len(shape) >= 2:
        fan = np.prod(shape[1:])
        flat = np.sqrt(2 / fan) * np.sqrt(2) * np.cos(0.37 * k**2 + k)
    else:
        flat = 0.1 * np.cos(k)
    return flat.reshape(shape).astype("float32")


def tensors_of(name):
    described_tensors = described()[name]["tensors"]
    return {
        key: value(key, tuple(shape)) if "float" in dtype else np.zeros(shape, "int64")
        for key, (shape, dtype) in described_tensors.items()
    }


def image():
    i, j, c = np.meshgrid(*map(np.arange, (224, 224, 3)), indexing="ij")
    pixels = np.cos(0.05 * i * (c + 1) + 0.11 * j) + 0.5 * np.sin(0.37 * i - 0.23 * j * (c + 1))
    return pixels[None].astype("float32")


def build(name, classes=1000, **changes):
    registry_imports.load_tasks()
    config = exp_factory.get_exp_config("image_classification")
    known = catalog.KNOWN[name]
    settings = {**known.settings, "num_classes": classes, "input_size": [224, 224, 3]}
    config.override({"task": {"model": settings}})
    config.override({"task": {"model": changes}})
    task = task_factory.get_task(config.task)
    if keras.backend.backend() != "jax":
        return task.build_model()
    with keras.StatelessScope(initialize_variables=False):
        model = task.build_model()
    keras.utils.clear_session()  # or Keras would give the variables values later
    return model


def load(monkeypatch, name, model, parts="all", tensors=None):
    source = StateDict(f"/weights/{name}.pth", tensors or tensors_of(name))
    monkeypatch.setattr(modules, "open_source", lambda path: source)
    return load_modules(model, f"/weights/{name}.pth", parts)


def answer(model, images):
    if keras.backend.backend() == "jax":
        return model.predict(images, verbose=0)
    return keras.ops.convert_to_numpy(model(images, training=False))


def difference(name, model):
    expected = outputs()[f"{name}/logits"]
    return np.abs(answer(model, image()) - expected).max() / np.abs(expected).max()


def check(monkeypatch, name):
    model = build(name)
    report = load(monkeypatch, name, model)
    assert len(report.loaded) == len(model.weights)
    assert not report.skipped + report.missing + report.unused
    assert difference(name, model) < TOLERANCE


@pytest.mark.parametrize("name", QUICK)
def test_a_model_loads_whole_and_answers_alike(monkeypatch, name):
    check(monkeypatch, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name not in QUICK])
def test_another_model_loads_whole_and_answers_alike(monkeypatch, name):
    check(monkeypatch, name)


@pytest.mark.parametrize(
    "changes",
    [
        {"backbone": {"mobilenet": {"padding": "same"}}},
        {"norm_activation": {"norm_epsilon": 0.001}},
    ],
    ids=["padding", "epsilon"],
)
def test_other_settings_give_other_answers(monkeypatch, changes):
    name = "torchvision/mobilenet_v2"
    model = build(name, **changes)
    with pytest.warns(errors.CheckpointWarning, match="wants other settings"):
        load(monkeypatch, name, model)
    assert difference(name, model) > 3 * TOLERANCE


def test_other_classes_are_skipped(monkeypatch):
    report = load(monkeypatch, "torchvision/mobilenet_v2", build("torchvision/mobilenet_v2", 7))
    assert [row.name for row in report.skipped] == ["layers/logits/bias", "layers/logits/kernel"]


def test_the_backbone_of_a_detector(monkeypatch):
    name = "torchvision/resnet18"
    tensors = {f"backbone.body.{key}": v for key, v in tensors_of(name).items() if "fc." not in key}
    tensors["backbone.fpn.inner_blocks.0.0.weight"] = np.zeros((256, 64, 1, 1), "float32")
    model = build(name)
    report = load(monkeypatch, name, model, "backbone", tensors)
    assert len(report.loaded) == len(model.backbone.weights)
    assert not report.unused


def test_the_backbone_of_a_mobile_segmenter(monkeypatch):
    name = "torchvision/mobilenet_v3_large"
    tensors = {
        key.replace("features.", "backbone."): v
        for key, v in tensors_of(name).items()
        if key.startswith("features.")
    }
    model = build(name)
    report = load(monkeypatch, name, model, "backbone", tensors)
    # The layer between features and classes is a part of the classifier there.
    assert [row.name for row in report.missing] == [
        "backbone/layers/block18/conv/bias",
        "backbone/layers/block18/conv/kernel",
    ]
    assert not report.unused


def test_another_model_is_refused(monkeypatch):
    with pytest.raises(errors.CheckpointError, match="are of no MobileNet that is known"):
        load(
            monkeypatch,
            "torchvision/mobilenet_v2",
            build("torchvision/mobilenet_v2"),
            tensors=tensors_of("torchvision/resnet18"),
        )


def test_another_size_is_refused(monkeypatch):
    with pytest.raises(errors.CheckpointError, match="weights have no value in it"):
        load(
            monkeypatch,
            "torchvision/resnet50",
            build("torchvision/resnet50"),
            tensors=tensors_of("torchvision/resnet18"),
        )


def test_a_real_file():
    path = shared_file("weights/mobilenet_v2-b0353104.pth")
    figures = np.load(shared_file("reference/weights/mobilenet_v2_real.npz"))
    model = build("torchvision/mobilenet_v2")
    report = load_modules(model, path)
    assert len(report.loaded) == len(model.weights)
    assert not report.skipped + report.missing + report.unused
    shown = catalog.KNOWN["torchvision/mobilenet_v2"].preprocessing
    pictures = sorted({key.split("/")[0] for key in figures.files})
    pixels = np.stack([figures[f"{picture}/uint8"] for picture in pictures]) / np.float32(255)
    expected = np.stack([figures[f"{picture}/logits"] for picture in pictures])
    found = answer(model, (pixels - np.float32(shown.mean)) / np.float32(shown.std))
    np.testing.assert_allclose(found, expected, atol=1e-3)
    np.testing.assert_array_equal(found.argmax(1), expected.argmax(1))


def test_a_real_file_of_another_program():
    path = shared_file("weights/efficientnet-lite0-57934424.pth")
    model = build("efficientnet-pytorch/efficientnet-lite0")
    report = load_modules(model, path)
    assert len(report.loaded) == len(model.weights)
    assert not report.skipped + report.missing + report.unused


@pytest.mark.slow
def test_on_jax():
    run_under_engine("jax", __file__, select="answers_alike or real_file", timeout=1200)
