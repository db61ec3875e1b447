"""Configs are instant. The bounds are about ten times what a laptop takes, in processor time."""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from hortus import hyperparams
from hortus.core import exp_factory
from hortus.vision import registry_imports  # noqa: F401

LARGE = "maskrcnn_spinenet_coco"


def seconds(run: Callable[[], Any]) -> float:
    """The best of five, so that a busy machine does not matter."""
    times = []
    for _ in range(5):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize(
    ("run", "bound"),
    [
        pytest.param(lambda config: exp_factory.get_exp_config(LARGE), 0.03, id="build"),
        pytest.param(lambda config: config.as_dict(), 0.005, id="as_dict"),
        pytest.param(lambda config: config.override(config.as_dict()), 0.01, id="override"),
        pytest.param(lambda config: config.validate(), 0.005, id="validate"),
        pytest.param(lambda config: config.replace(), 0.01, id="replace"),
        pytest.param(lambda config: config.to_yaml(), 0.03, id="to_yaml"),
        pytest.param(lambda config: hyperparams.json_schema(config), 0.3, id="json_schema"),
    ],
)
def test_a_large_experiment_is_handled_at_once(run, bound):
    config = exp_factory.get_exp_config(LARGE)
    assert seconds(lambda: run(config)) < bound


def test_reading_a_file_loads_no_validator_unless_a_value_needs_one(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("trainer: {train_steps: 5}\ntask: {losses: {l2_weight_decay: 1}}\n")
    code = (
        "import sys\n"
        "from hortus import hyperparams\n"
        "from hortus.core import exp_factory\n"
        "from hortus.vision import registry_imports\n"
        "config = exp_factory.get_exp_config('resnet_imagenet')\n"
        f"config.override(hyperparams.load_overrides({str(path)!r}))\n"
        "print({'pydantic', 'numpy', 'keras', 'tensorflow', 'jax'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
