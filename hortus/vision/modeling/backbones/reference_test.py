"""All backbones against the reference: parameter counts, and outputs for known weights."""

import json

import keras
import numpy as np
import pytest

from hortus.testing import backbones as testing
from hortus.testing import reference_dir
from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.configs import common
from hortus.vision.modeling.backbones import factory


def build(kind, settings, input_shape):
    config = backbone_configs.Backbone(type=kind)
    config.get().override(settings)
    specs = keras.layers.InputSpec(shape=(None, *input_shape))
    return factory.build_backbone(specs, config, common.NormActivation())


def build_without_values(kind, settings, input_shape):
    """On JAX, compiling an initializer for each shape would take longer than all the rest."""
    if keras.backend.backend() != "jax":
        return build(kind, settings, input_shape)
    with keras.StatelessScope(initialize_variables=False):
        model = build(kind, settings, input_shape)
    keras.utils.clear_session()  # or Keras would give the variables values later
    return model


def run(model, images):
    """Evaluates; compiled as a whole on JAX, where operations are slow one by one."""
    if keras.backend.backend() == "jax":
        return model.predict(images, verbose=0)
    return model(images, training=False)


def settings_of(key):
    """The settings of entries that have no config."""
    kind, _, name = key.partition("/")
    if kind == "vit":  # the largest were never built: their counts come from a formula
        return {"type": kind, "model_name": name}
    return {"type": kind, "model_id": int(name.partition("@")[0])}  # what follows is the default


def count(variables):
    return sum(int(np.prod(v.shape)) for v in variables)


@pytest.mark.parametrize(
    "family",
    [
        "dilated_resnet",
        "efficientnet",
        "mobiledet",
        "mobilenet",
        "resnet",
        "resnet_rs",
        "resnet_unet",
        "revnet",
        "spinenet",
        "spinenet_mobile",
        "vit",
    ],
)
def test_parameter_counts(family):
    entries = json.loads((reference_dir() / "models.json").read_text())["backbones"]
    entries = {key: entry for key, entry in entries.items() if key.split("/")[0] == family}
    assert entries
    for key, entry in entries.items():
        settings = dict(entry.get("config") or settings_of(key))
        # Variables without values: some of these models would fill the memory.
        with keras.StatelessScope(initialize_variables=False):
            model = build(settings.pop("type"), settings, entry["input"])
        ours = {
            "trainable_params": count(model.trainable_weights),
            "non_trainable_params": count(model.non_trainable_weights),
            "outputs": {level: list(x.shape) for level, x in model.output.items()},
            "output_specs": {level: list(shape) for level, shape in model.output_specs.items()},
        }
        theirs = {name: entry.get(name, ours[name]) for name in ours}
        theirs["output_specs"] = theirs["output_specs"] or {}
        assert ours == theirs, key
        keras.utils.clear_session()


@pytest.mark.parametrize(
    "key",
    [
        "dilated_resnet/50@os8_multigrid124",
        "efficientnet/b0@se0.25",
        "mobiledet/MobileDetCPU",
        "mobiledet/MobileDetDSP",
        "mobiledet/MobileDetEdgeTPU",
        "mobilenet/MobileNetMultiAVGSeg",
        "mobilenet/MobileNetMultiMAX",
        "mobilenet/MobileNetMultiMAXSeg",
        "mobilenet/MobileNetV1",
        "mobilenet/MobileNetV2",
        "mobilenet/MobileNetV3Large",
        "mobilenet/MobileNetV3Small",
        "mobilenet/MobileNetV3SmallReducedFilters",
        "mobilenet/MobileNetV4ConvLarge",
        "mobilenet/MobileNetV4ConvMedium",
        "mobilenet/MobileNetV4ConvMediumSeg",
        "mobilenet/MobileNetV4ConvSmall",
        "mobilenet/MobileNetV4HybridMedium",
        "resnet/18",
        "resnet/50",
        "revnet/38",
        "spinenet/49S",
    ],
)
def test_outputs_for_known_weights(key):
    golden = np.load(reference_dir() / "golden" / "forward_backbones.npz")
    kind, _, name = key.partition("/")
    name, _, variant = name.partition("@")
    settings = {
        "": {},
        "os8_multigrid124": {"output_stride": 8, "multigrid": [1, 2, 4]},
        "se0.25": {"se_ratio": 0.25},
    }[variant]
    settings["model_name" if kind == "vit" else "model_id"] = name
    images = golden["input_128" if kind.startswith("spinenet") else "input_64"]
    model = build_without_values(kind, settings, images.shape[1:])
    testing.set_known_weights(model)
    outputs = run(model, images)

    prefix = f"{key}/eval/"
    levels = {k[len(prefix) :].rpartition("/")[0] for k in golden.files if k.startswith(prefix)}
    assert set(outputs) == levels
    for level in levels:
        output = keras.ops.convert_to_numpy(outputs[level])
        assert output.shape == tuple(golden[f"{prefix}{level}/shape"])
        picked = output.ravel()[golden[f"{prefix}{level}/sample_idx"]]
        largest = golden[f"{prefix}{level}/mean_std_absmax"][2]
        # float32 through up to a hundred layers, on other kernels than the reference's.
        np.testing.assert_allclose(picked, golden[f"{prefix}{level}/sample"], atol=1e-4 * largest)
