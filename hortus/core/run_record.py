"""How a run was started, each time, and who it is: `run.json` in its folder."""

import json
import os
import shlex
import sys
import time
from typing import Any, Optional

import hortus
from hortus import hyperparams
from hortus.core import atomic_file, machine
from hortus.core import config_definitions as cfg
from hortus.core.run_folder import RunFolder
from hortus.core.run_identity import RunIdentity


def write(model_dir: "str | os.PathLike[str]", params: cfg.ExperimentConfig, engine: str) -> None:
    """Adds a start to the record: who the run is, the command, the machine, who set which value.

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
            "hortus": hortus.__version__,
            **RunIdentity.of(params, engine).as_dict(),
            "machine": machine.facts(),
            "origins": origins(params),
        }
    )
    text = json.dumps({"starts": starts}, indent=1)
    atomic_file.replace(RunFolder(model_dir).record, text.encode())


def read(model_dir: "str | os.PathLike[str]") -> list[dict[str, Any]]:
    """All starts of a run, the first one first; none where there is no record that can be read."""
    try:
        with open(RunFolder(model_dir).record, encoding="utf-8") as file:
            starts = json.load(file)["starts"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return [one for one in starts if isinstance(one, dict)] if isinstance(starts, list) else []


def identity(model_dir: "str | os.PathLike[str]") -> Optional[RunIdentity]:
    """Who the run is, as its last start tells; None for a run of an older hortus."""
    starts = read(model_dir)
    return RunIdentity.from_dict(starts[-1]) if starts else None


def origins(params: cfg.ExperimentConfig) -> dict[str, str]:
    """Who set a value, by its path, for all values that are no defaults."""
    return {
        leaf.path: str(leaf.origin)
        for leaf in hyperparams.walk(params)
        if str(leaf.origin) != "default"
    }
