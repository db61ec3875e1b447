"""How a run was started: `run.json` in its folder, for reports."""

import json
import os
import shlex
import sys
import time
from typing import Any

from hortus import hyperparams
from hortus.core import atomic_file, machine
from hortus.core import config_definitions as cfg

_NAME = "run.json"


def write(model_dir: "str | os.PathLike[str]", params: cfg.ExperimentConfig, engine: str) -> None:
    """Adds a start to the record: the command, the machine, and who set which value.

    Args:
        model_dir: the folder of the run.
        params: its config.
        engine: `tensorflow` or `jax`.
    """
    starts = read(model_dir)
    starts.append(
        {
            "time": time.time(),
            "command": shlex.join([os.path.basename(sys.argv[0]), *sys.argv[1:]]),
            "engine": engine,
            "machine": machine.facts(),
            "origins": origins(params),
        }
    )
    text = json.dumps({"starts": starts}, indent=1)
    atomic_file.replace(os.path.join(model_dir, _NAME), text.encode())


def read(model_dir: "str | os.PathLike[str]") -> list[dict[str, Any]]:
    """All starts of a run, the first one first; none where there is no record that can be read."""
    try:
        with open(os.path.join(model_dir, _NAME), encoding="utf-8") as file:
            starts = json.load(file)["starts"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [start for start in starts if isinstance(start, dict)]


def origins(params: cfg.ExperimentConfig) -> dict[str, str]:
    """Who set a value, by its path, for all values that are no defaults."""
    return {
        leaf.path: str(leaf.origin)
        for leaf in hyperparams.walk(params)
        if str(leaf.origin) != "default"
    }
