import dataclasses
import json
import subprocess
import sys

import pytest
import yaml

from hortus import hyperparams, optimization
from hortus.testing import reference_dir

ADDED = {"CosineRestartsLrConfig"}


class PlainLoader(yaml.SafeLoader):
    """Takes tuples, which stand elsewhere in these files, for lists."""


PlainLoader.add_constructor(
    "tag:yaml.org,2002:python/tuple", lambda loader, node: loader.construct_sequence(node)
)


def reference_classes():
    """Name -> {field: default} of the reference's optimization configs; None for a sub-config."""
    fields = json.loads((reference_dir() / "config_fields.json").read_text())
    return {
        path.rpartition(".")[2]: {name: field["default"] for name, field in value["fields"].items()}
        for path, value in fields.items()
        if ".optimization.configs." in path
    }


def optimizer_configs(node):
    """All `optimizer_config` sections in nested data."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "optimizer_config":
                yield value
            else:
                yield from optimizer_configs(value)


def test_every_class_field_order_and_default_is_as_in_the_reference():
    classes = reference_classes()
    assert len(classes) == 30
    for name, defaults in classes.items():
        ours = getattr(optimization, name)()
        names = [field.name for field in dataclasses.fields(ours)]
        if name == "LrConfig":
            names.remove("cosine_restarts")
        assert names == list(defaults), name
        for field, default in defaults.items():
            value = getattr(ours, field)
            if isinstance(default, dict):
                assert type(value).__name__ == default["__config__"], f"{name}.{field}"
            else:
                assert value == default, f"{name}.{field}"


def test_the_only_class_beside_the_reference_is_cosine_restarts():
    ours = {name for name in optimization.__all__ if name.endswith("Config")}
    assert ours - set(reference_classes()) == ADDED
    assert optimization.CosineRestartsLrConfig().as_dict() == {
        "name": "CosineDecayRestarts",
        "initial_learning_rate": None,
        "first_decay_steps": None,
        "t_mul": 2.0,
        "m_mul": 1.0,
        "alpha": 0.0,
        "offset": 0,
    }


def test_every_reference_experiment_loads_validates_and_exports_the_same():
    experiments = json.loads((reference_dir() / "experiments.json").read_text())
    sections = list(optimizer_configs(experiments))
    assert len(sections) >= 31
    for section in sections:
        config = optimization.OptimizationConfig(section)
        config.validate()
        assert config.as_dict() == section


def test_every_reference_yaml_section_loads_and_validates():
    count = 0
    for file in (reference_dir() / "yamls").rglob("*.yaml"):
        for section in optimizer_configs(yaml.load(file.read_text(), PlainLoader)):
            optimization.OptimizationConfig(section).validate()
            count += 1
    assert count >= 50


def test_defaults_validate():
    for name in optimization.__all__:
        if name.endswith("Config"):
            getattr(optimization, name)().validate()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (optimization.StepwiseLrConfig(boundaries=[1, 2], values=[0.1]), "one value more than"),
        (optimization.StepwiseLrConfig(boundaries=[2, 2], values=[3.0, 2, 1]), "do not increase"),
        (optimization.StepwiseLrConfig(values=[0.1]), "boundaries is missing"),
        (optimization.StepCosineLrConfig(boundaries=[0, 5], values=[0.1]), "as many values as"),
        (optimization.SGDConfig(clipnorm=1.0, global_clipnorm=2.0), "clipnorm (1.0) and global_"),
        (optimization.AdamWeightDecayExperimentalConfig(clipnorm=2.0), "are both set"),
        (
            optimization.AdamWeightDecayConfig(exclude_from_weight_decay=["("]),
            "exclude_from_weight_decay: '(' is not a regular expression",
        ),
        (optimization.LARSConfig(exclude_from_layer_adaptation="*"), "is not a regular expression"),
    ],
)
def test_what_contradicts_itself_is_said(config, message):
    with pytest.raises(hyperparams.ConfigError) as error:
        config.validate()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("cls", "field", "value", "wanted"),
    [
        (optimization.CosineLrConfig, "decay_steps", 0, "a whole number of 1 or more"),
        (optimization.CosineLrConfig, "initial_learning_rate", float("nan"), "a finite number of"),
        (optimization.CosineRestartsLrConfig, "t_mul", 0.5, "a number of 1 or more"),
        (optimization.PowerAndLinearDecayLrConfig, "linear_decay_fraction", 2, "from 0 to 1"),
        (optimization.LinearWarmupConfig, "warmup_steps", -1, "a whole number of 0 or more"),
        (optimization.EMAConfig, "average_decay", 1.5, "from 0 to 1"),
        (optimization.AdamConfig, "epsilon", float("inf"), "a finite number of 0 or more"),
    ],
)
def test_what_is_out_of_bounds_is_refused_when_it_is_set(cls, field, value, wanted):
    with pytest.raises(hyperparams.OutOfBoundsError, match=f"{field}: expected .*{wanted}"):
        cls(**{field: value})


def test_patterns_keep_the_form_in_which_they_were_written():
    config = optimization.OptimizerConfig({"type": "adamw"})
    config.override({"adamw": {"include_in_weight_decay": ".*(kernel|weight):0$"}})
    config.override({"adamw": {"exclude_from_weight_decay": ["bias", "norm"]}})
    assert config.adamw.include_in_weight_decay == ".*(kernel|weight):0$"
    assert config.adamw.exclude_from_weight_decay == ["bias", "norm"]


def test_a_field_without_effect_warns_when_set():
    config = optimization.OptimizationConfig({"optimizer": {"type": "sgd_experimental"}})
    with pytest.warns(hyperparams.ConfigWarning, match="jit_compile .* has no effect"):
        config.override({"optimizer": {"sgd_experimental": {"jit_compile": True}}})


def test_settings_import_no_numerical_library():
    code = (
        "import sys\n"
        "from hortus import optimization\n"
        "optimization.OptimizationConfig({'optimizer': {'type': 'sgd'}}).validate()\n"
        "heavy = {'numpy', 'keras', 'tensorflow', 'jax'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
