"""What a path to start from can be: a checkpoint, a run, an export, a tensor file, TensorFlow's."""

import json
import os
import re
import warnings
from collections.abc import Mapping
from typing import Optional, Union

import numpy as np

from hortus import hyperparams
from hortus.core.checkpoints import best_exporter, file_kind, manifest, store, tensor_file
from hortus.core.checkpoints.errors import (
    CheckpointError,
    CheckpointWarning,
    CorruptCheckpointError,
)
from hortus.core.checkpoints.state_dict import StateDict, read_state_dict
from hortus.core.checkpoints.store import StoredCheckpoint
from hortus.core.checkpoints.tf2.object_graph import KEY, ObjectGraph
from hortus.core.checkpoints.tf2.tensor_bundle import TensorBundle

_TF_STATE = "checkpoint"
_TF_LATEST = re.compile(r'^model_checkpoint_path:\s*"(.*)"', re.MULTILINE)


class NamedTensors:
    """Tensors under structural names, of a checkpoint or of a lone file.

    Attributes:
        path: where they come from.
        tensors: stored name to value.
        names: every name of a weight, aliases included, to the stored name.
        modules: name of each module to `{name within it: stored name}`; {} if unknown.
        layers: names of the items that are models or layers; () if unknown.
    """

    def __init__(
        self,
        path: str,
        tensors: Mapping[str, np.ndarray],
        names: Mapping[str, str],
        modules: Mapping[str, Mapping[str, str]],
        layers: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self.tensors = tensors
        self.names = names
        self.modules = modules
        self.layers = layers


Source = Union[NamedTensors, ObjectGraph, StateDict]


def open_source(path: str) -> Source:
    """Reads what `path` names.

    Args:
        path: the folder of a checkpoint; a folder of checkpoints (the newest whole one is taken)
            or of an exported best one; a `.safetensors` file; a file that PyTorch saved; or the
            prefix of a TensorFlow 2 checkpoint, or a folder of those.

    Raises:
        CheckpointError: it is nothing of these, or damaged.
    """
    path = os.fspath(path)
    if "://" in path:
        raise CheckpointError(
            f"{path} is not in a local or mounted file system. Copy it, and name the copy."
        )
    if os.path.isfile(path + ".index") or path.endswith(".index"):
        return _tensorflow(path.removesuffix(".index"))
    if os.path.isfile(path):
        return _file(path)
    if os.path.isfile(os.path.join(path, manifest.NAME)):
        return _checkpoint(path)
    if os.path.isdir(path):
        found = _from_folder(path)
        if found is not None:
            return found
        if file_kind.is_saved_model(path):
            raise CheckpointError(file_kind.refusal(path, file_kind.GRAPH))
    raise CheckpointError(f"there is no checkpoint at {path}.{_hint(path)}")


def _from_folder(path: str) -> Optional[Source]:
    candidates: list[tuple[Optional[int], str]] = [*reversed(store.find(path))]
    if best := best_exporter.find_best(path):
        candidates.append((None, best))
    for step, candidate in candidates:
        try:
            return _checkpoint(candidate, step)
        except CorruptCheckpointError as error:
            if candidate == candidates[-1][1]:
                raise
            message = f"A checkpoint is {error.is_what}: {error}"
            warnings.warn(message, CheckpointWarning, stacklevel=4)
    state = os.path.join(path, _TF_STATE)
    if os.path.isfile(state):
        with open(state, encoding="utf-8", errors="replace") as file:
            latest = _TF_LATEST.search(file.read())
        if latest:
            prefix = os.path.join(path, latest[1])
            if not os.path.isfile(prefix + ".index"):
                # The whole folder may have been moved: paths in the file can be absolute.
                prefix = os.path.join(path, os.path.basename(latest[1]))
            return _tensorflow(prefix)
    return None


def _checkpoint(path: str, step: Optional[int] = None) -> NamedTensors:
    """The tensors of a checkpoint; of this step, where its name has said so."""
    if step is None:
        stored = StoredCheckpoint.open(path)
    else:
        stored = StoredCheckpoint.open_found(step, path)
    told = stored.manifest
    names = {name: name for name, entry in told.variables.items() if entry["kind"] == "weight"}
    names |= {alias: name for alias, name in told.aliases.items() if name in names}
    layers = tuple(name for name, kind in told.items.items() if kind == "layer")
    return NamedTensors(path, stored.tensors(), names, told.modules, layers)


def _file(path: str) -> Source:
    kind = file_kind.file_kind(path)
    if kind == file_kind.TORCH:
        return read_state_dict(path)
    if kind != file_kind.SAFETENSORS:
        raise CheckpointError(file_kind.refusal(path, kind))
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.basename(path) == store.WEIGHTS and os.path.isfile(
        os.path.join(folder, manifest.NAME)
    ):
        return _checkpoint(folder)
    tensors, metadata = tensor_file.read_tensors(path)
    if metadata.get("format") != "hortus" and _is_torch_like(tensors):
        return StateDict(path, tensors)
    modules = json.loads(metadata["modules"]) if metadata.get("format") == "hortus" else {}
    return NamedTensors(path, tensors, {name: name for name in tensors}, modules)


def _is_torch_like(tensors: Mapping[str, np.ndarray]) -> bool:
    """Whether names are those of PyTorch, as `layer1.0.conv1.weight`."""
    return (
        bool(tensors)
        and all("/" not in name for name in tensors)
        and any(name.endswith((".weight", ".bias")) for name in tensors)
    )


def _tensorflow(prefix: str) -> Source:
    bundle = TensorBundle(prefix)
    if KEY in bundle:
        return ObjectGraph(bundle)
    raise CheckpointError(
        f"{prefix} is a TensorFlow checkpoint without an object graph (of TensorFlow 1, or of "
        "names only), from which modules cannot be told apart."
    )


def _hint(path: str) -> str:
    if os.path.isdir(path):
        entries = sorted(os.listdir(path))
        inside = ", ".join(entries[:6]) + (", ..." if len(entries) > 6 else "")
        return (
            f" The folder holds {inside or 'nothing'}; expected {manifest.NAME}, folders "
            "ckpt-<step>, or a TensorFlow checkpoint."
        )
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        return f" The folder {folder} does not exist."
    known = sorted({name.removesuffix(".index") for name in os.listdir(folder)})
    return hyperparams.did_you_mean(os.path.basename(path), known)
