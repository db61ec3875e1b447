import json

import pytest

from hortus.core import exp_factory
from hortus.testing import reference_dir
from hortus.vision import registry_imports  # noqa: F401
from hortus.vision.weights.catalog import KNOWN


@pytest.mark.parametrize("name", KNOWN)
def test_settings_are_valid(name):
    config = exp_factory.get_exp_config("image_classification")
    known = KNOWN[name]
    config.override({"task": {"model": {**known.settings, "num_classes": 1000}}})
    config.task.model.validate()
    assert config.task.model.backbone.type == known.backbone


def test_sizes_and_epsilons_are_those_of_the_models():
    described = json.loads((reference_dir() / "weights" / "torch_models.json").read_text())
    for name, entry in described.items():
        known = KNOWN[name]
        assert abs(entry["parameters"] / 1e6 - known.parameters) < 0.06, name
        if known.norm:
            assert entry["normalization_eps"] == [known.norm["norm_epsilon"]], name
