"""All decoders against the reference: parameters, shapes, and outputs for known weights."""

import hashlib
import json
import re

import keras
import numpy as np
import pytest

from hortus.testing import backbones as testing
from hortus.testing import reference_dir
from hortus.testing.heads import evaluate
from hortus.vision.configs import retinanet
from hortus.vision.modeling.decoders import factory

BACKBONES = {"dilated_resnet50_os16@256": "dilated_resnet/50@os16", "resnet50@256": "resnet/50"}
SETTINGS = {
    "concat": {"fusion_type": "concat"},
    "depthwise": {"use_depthwise_convolution": True},
    "f128": {"num_filters": 128},
    "keras": {},
    "layer": {},
    "output": {"output_tensor": True},
    "repeats3": {"num_repeats": 3},
    "sepconv": {"use_separable_conv": True},
    "spp": {},
    "tensor": {},
    "v1": {"spp_layer_version": "v1"},
    "v2": {"spp_layer_version": "v2"},
}
GOLDEN = {
    "aspp/l4_f32_6_12_18": {"dilation_rates": [6, 12, 18]},
    "aspp/l4_f32_pool[64,64]": {"pool_kernel_size": [64, 64]},
    "aspp/l4_f32_v2_6_12_18": {"dilation_rates": [6, 12, 18], "spp_layer_version": "v2"},
    "fpn/l2_6_f32_sep": {"use_separable_conv": True},
    "fpn/l3_7_f32": {},
    "nasfpn/l3_7_f32_r2": {"num_repeats": 2},
}


def build(kind, levels, settings, specs):
    config = retinanet.RetinaNet(min_level=levels[0], max_level=levels[1])
    config.override({"decoder": {"type": kind, kind: settings}})
    return factory.build_decoder(specs, config)


def parse(key):
    """Kind, levels and settings that a key such as `aspp/l4_rates[6,12]_v1` stands for."""
    kind, _, name = key.partition("/")
    first, last = re.match(r"l(\d)(?:_(\d))?", name).groups()
    settings = {"level": int(first)} if kind == "aspp" else {}
    for setting, values in re.findall(r"(rates|pool)\[([\d,]*)\]", name):
        field = {"rates": "dilation_rates", "pool": "pool_kernel_size"}[setting]
        settings[field] = [int(value) for value in values.split(",") if value]
    for part in re.sub(r"^l\d(_\d)?|(rates|pool)\[[\d,]*\]", "", name).strip("_").split("_"):
        settings |= SETTINGS[part] if part else {}
    return kind, (int(first), int(last or 7)), settings


def test_parameters_and_shapes():
    models = json.loads((reference_dir() / "models.json").read_text())
    entries = {key: entry for key, entry in models["decoders"].items() if key != "identity"}
    assert len(entries) > 15
    for key, entry in entries.items():
        specs = models["backbones"][BACKBONES[entry["backbone"]]]["output_specs"]
        # Variables without values, as only their shapes are asked for.
        with keras.StatelessScope(initialize_variables=False):
            ours = measure(build(*parse(key), specs))
        assert ours == {name: entry[name] for name in ours}, key
        keras.utils.clear_session()


def measure(model):
    shapes = sorted(str(tuple(v.shape)) for v in model.trainable_weights)
    specs = model.output_specs
    return {
        "trainable_params": sum(int(np.prod(v.shape)) for v in model.trainable_weights),
        "non_trainable_params": sum(int(np.prod(v.shape)) for v in model.non_trainable_weights),
        "trainable_shapes_md5": hashlib.md5("|".join(shapes).encode()).hexdigest()[:12],
        "outputs": {level: list(shape) for level, shape in specs.items()}
        if isinstance(specs, dict)
        else list(specs),
    }


@pytest.mark.parametrize("key", GOLDEN)
def test_outputs_for_known_weights(key):
    golden = np.load(reference_dir() / "golden" / "forward_decoders_heads.npz")
    features = {str(level): golden[f"features/level{level}"] for level in range(2, 6)}
    specs = {level: (None, *x.shape[1:]) for level, x in features.items()}
    levels = (2, 6) if "l2_6" in key else (3, 7)
    model = build(key.partition("/")[0], levels, {**GOLDEN[key], "num_filters": 32}, specs)
    testing.set_known_weights(model)
    outputs = evaluate(model, features)
    expected = {name.split("/")[2] for name in golden.files if name.startswith(f"{key}/")}
    assert set(outputs) == expected
    for level, output in outputs.items():
        output = keras.ops.convert_to_numpy(output)
        assert output.shape == tuple(golden[f"{key}/{level}/shape"])
        picked = output.ravel()[golden[f"{key}/{level}/sample_idx"]]
        largest = golden[f"{key}/{level}/mean_std_absmax"][2]
        # float32 on other kernels than the reference's; measured: 2e-6 at most.
        np.testing.assert_allclose(picked, golden[f"{key}/{level}/sample"], atol=1e-5 * largest)
