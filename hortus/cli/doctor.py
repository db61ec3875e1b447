"""`hortus doctor`: what is installed, what works, and what to install for the rest."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Optional

from hortus.cli import output
from hortus.core import machine
from hortus.engine import environment

EXTRAS = {
    "cpu": (("tensorflow", "the TensorFlow engine, and reading data for both engines"),),
    "jax": (("jax", "the JAX engine"),),
    "export": (
        ("onnx", "export to ONNX"),
        ("tf2onnx", "export to ONNX"),
        ("onnxruntime", "checking an ONNX file"),
        ("ai-edge-litert", "checking a LiteRT file"),
        ("openvino", "export to OpenVINO"),
    ),
    "tfds": (("tensorflow-datasets", "data sets of TensorFlow Datasets"),),
}
"""Packages by the extra that installs them, and what each is for."""

_PROBES = {
    "tensorflow": """
import json
import tensorflow as tf
found = {"devices": [f"{d.device_type}: {d.name}" for d in tf.config.list_physical_devices()]}
try:
    from tensorflow.python.util import _pywrap_util_port
    found["onednn"] = bool(_pywrap_util_port.IsMklEnabled())
except (ImportError, AttributeError):
    pass  # no public way to ask
print(json.dumps(found))
""",
    "jax": """
import json, jax
print(json.dumps({"devices": [f"{d.platform.upper()}: {d}" for d in jax.devices()]}))
""",
}


def run() -> int:
    """Prints the report; returns 1 if no engine works."""
    facts = machine.facts()
    memory = f", {facts['memory_gib']} GiB" if facts["memory_gib"] else ""
    rows = [
        ("Python", facts["python"]),
        ("system", facts["system"]),
        ("processor", f"{facts['processor']}, {facts['cpus']} CPUs{memory}"),
    ]
    rows += [(name, found) for name, found in facts["packages"].items()]
    print("Machine and packages")
    output.table(rows)
    print("\nEngines")
    found = {name: _probe(name) for name in environment.ENGINES}
    output.table([(name, _engine_text(name, result)) for name, result in found.items()])
    wanted = os.environ.get("KERAS_BACKEND", "tensorflow")
    print(f"Runs use {wanted}, unless runtime.engine says otherwise.")
    missing = list(_missing())
    if missing:
        print("\nNot installed")
        output.table(missing)
    works = [name for name, result in found.items() if "devices" in result]
    if not works:
        print("\nNo engine works: pip install 'hortus[cpu]', or hortus[tensorflow] for GPUs")
    return 0 if works else 1


def _probe(engine: str) -> dict[str, Any]:
    """What an engine finds, asked in a process of its own: loading it can fail in many ways."""
    if machine.version(engine) is None:
        return {"missing": True}
    env = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "1", **os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBES[engine]],
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": "did not load within two minutes"}
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"exit code {done.returncode}"}


def _engine_text(engine: str, found: dict[str, Any]) -> str:
    if found.get("missing"):
        return f"not installed: pip install 'hortus[{'cpu' if engine == 'tensorflow' else engine}]'"
    if "error" in found:
        return f"does not load: {found['error']}"
    text = "; ".join(found["devices"])
    return text + _onednn_text(found.get("onednn"))


def _onednn_text(is_on: Optional[bool]) -> str:
    if is_on is None:
        return ""
    return "; oneDNN on" if is_on else "; oneDNN off: unset TF_ENABLE_ONEDNN_OPTS for faster steps"


def _missing() -> Iterator[tuple[str, str, str]]:
    for extra, packages in EXTRAS.items():
        for package, purpose in packages:
            if machine.version(package) is None:
                yield package, purpose, f"pip install 'hortus[{extra}]'"
