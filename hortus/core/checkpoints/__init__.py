"""Checkpoints: engine-neutral, atomic, written in the background, restored whole or in part.

A checkpoint is a folder: tensors in the safetensors format under structural names, and a manifest
with the step, the checksum of each file and everything that is not a tensor. Names are resolved on
first use, so that reading a file needs NumPy and no Keras.
"""

import importlib
from typing import Any

_WHERE = {
    "BestCheckpointExporter": "best_exporter",
    "Checkpoint": "checkpoint",
    "CheckpointError": "errors",
    "CheckpointManager": "manager",
    "CheckpointWarning": "errors",
    "CorruptCheckpointError": "errors",
    "LoadReport": "load_report",
    "TensorBundle": "tf2.tensor_bundle",
    "load_modules": "modules",
    "named_variables": "names",
    "read_object_graph": "tf2.object_graph",
}

__all__ = [
    "BestCheckpointExporter",
    "Checkpoint",
    "CheckpointError",
    "CheckpointManager",
    "CheckpointWarning",
    "CorruptCheckpointError",
    "LoadReport",
    "TensorBundle",
    "load_modules",
    "named_variables",
    "read_object_graph",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
