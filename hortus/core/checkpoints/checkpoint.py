"""Checkpoint: named things that are saved and restored together."""

import contextlib
import dataclasses
import datetime
import json
import os
import warnings
from typing import Any

import keras
import numpy as np

from hortus import hyperparams
from hortus.core.checkpoints import atomic_folder, names, store, values
from hortus.core.checkpoints.errors import (
    CheckpointError,
    CheckpointWarning,
    explain_os_errors,
)
from hortus.core.checkpoints.layout import Layout, lay_out
from hortus.core.checkpoints.manifest import Manifest, as_json
from hortus.core.checkpoints.store import StoredCheckpoint

# Without these training can go on; without weights or optimizer state it cannot.
_DISPENSABLE = (names.METRIC, names.SEED)
_SHOWN = 8


@dataclasses.dataclass
class PendingSave:
    """A checkpoint whose content is in memory, and is still to be written.

    Attributes:
        path: the folder it becomes.
        folder: the temporary folder, in which the host's own files already are.
        manifest: what is known of it before it is written.
        tensors: copies of all values.
    """

    path: str
    folder: str
    manifest: Manifest
    tensors: dict[str, np.ndarray]

    def write(self) -> None:
        """Writes and commits it. After a failure nothing of it remains on the disk."""
        try:
            with explain_os_errors(f"write the checkpoint {self.path}", os.path.dirname(self.path)):
                metadata = {"format": "hortus", "modules": json.dumps(self.manifest.modules)}
                store.write(self.folder, self.manifest, self.tensors, metadata)
                atomic_folder.commit(self.folder, self.path)
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Removes what is on the disk of it."""
        with contextlib.suppress(OSError):
            atomic_folder.discard(self.folder)


class Checkpoint:
    """Named things that are saved and restored together.

        checkpoint = Checkpoint(model=model, optimizer=optimizer, step=step, data=iterator)
        checkpoint.save("/runs/a/ckpt-10", step=10)
        checkpoint.restore("/runs/a/ckpt-10")

    Saving and restoring both need a built model and a built optimizer. Usually a
    `CheckpointManager` does both.

    Args:
        **items: what to save. Each is a Keras Model, Layer, Optimizer, Metric, SeedGenerator or
            Variable; a list or dict of those; an object with `get_state() -> dict` of plain JSON
            values and `set_state(dict)`; or an object with `save_files(folder)` and
            `load_files(folder)`, which every host calls for files of its own, as for its position
            in the data. The learning rate of an optimizer is a setting and is not saved.
    """

    def __init__(self, **items: Any) -> None:
        self._items = items

    @property
    def items(self) -> dict[str, Any]:
        """The named things."""
        return dict(self._items)

    def layout(self) -> Layout:
        """The names of all variables, and the objects with other state, as they are now."""
        return lay_out(self._items)

    def save(self, path: str, step: int = 0, config: Any = None) -> str:
        """Writes the checkpoint folder `path`, whole or not at all, and returns its full path.

        Args:
            path: the folder; what is there is replaced.
            step: the training step.
            config: the config of the run, to be kept beside.
        """
        pending = self.prepare(path, step, config=config)
        pending.write()
        return pending.path

    def restore(self, path: str, strict: bool = True) -> int:
        """Sets everything to what the checkpoint folder `path` holds, and returns its step.

        Args:
            path: the folder.
            strict: whether weights and optimizer state have to agree with the file one by one.
                Metrics and random seeds never have to; what is missing of them is warned about.

        Raises:
            CorruptCheckpointError: it is damaged. Nothing was changed.
            CheckpointError: it does not fit. Nothing was changed.
        """
        return self.restore_stored(StoredCheckpoint.open(_full(path)), strict=strict)

    def prepare(
        self,
        path: str,
        step: int,
        config: Any = None,
        host_index: int = 0,
        host_count: int = 1,
    ) -> PendingSave:
        """Copies everything into memory, and the host's own files into a temporary folder."""
        path, layout = _full(path), self.layout()
        tensors = {name: values.read(named.variable) for name, named in layout.variables.items()}
        manifest = Manifest(
            step=int(step),
            engine=keras.config.backend(),
            keras=keras.__version__,
            created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            items=layout.kinds,
            variables={
                name: {
                    "shape": list(tensor.shape),
                    "dtype": tensor.dtype.name,
                    "kind": layout.variables[name].kind,
                }
                for name, tensor in tensors.items()
            },
            aliases=layout.aliases,
            modules=layout.modules,
            state={name: as_json(part.get_state(), name) for name, part in layout.states.items()},
            hosts=host_count,
            config=as_json(config, "config"),
        )
        with explain_os_errors(f"write the checkpoint {path}", os.path.dirname(path)):
            pending = PendingSave(path, atomic_folder.begin(path), manifest, tensors)
            try:
                save_files(layout, pending.folder, host_index)
            except BaseException:
                pending.abort()
                raise
        return pending

    def join_reading(self) -> None:
        """Takes part in reading what hosts sum up, on a host that does not write it itself."""
        for named in self.layout().variables.values():
            if values.is_summed_over_hosts(named.variable):
                values.read(named.variable)

    def restore_stored(
        self,
        stored: StoredCheckpoint,
        strict: bool = True,
        host_index: int = 0,
        host_count: int = 1,
    ) -> int:
        """As `restore`, on one of several hosts."""
        layout = self.layout()
        tensors = stored.tensors()
        folders = _own_folders(layout, stored, host_index, host_count)
        matched = _match(layout, stored, tensors, strict)
        # Everything is read and checked: from here on things change.
        for name, value in matched.items():
            values.assign(layout.variables[name].variable, value, holds_sums=host_index == 0)
        for name, part in layout.states.items():
            if name in stored.manifest.state:
                part.set_state(stored.manifest.state[name])
            elif name not in folders:
                _warn(f"{stored.path} holds no state of {name}, which stays as it is")
        for name, folder in folders.items():
            layout.files[name].load_files(folder)
        return stored.manifest.step


def save_files(layout: Layout, folder: str, host_index: int) -> None:
    """Has every item that wants it write this host's own files below `folder`."""
    for name, part in layout.files.items():
        own = os.path.join(folder, host_folder(host_index), name)
        os.makedirs(own)
        part.save_files(own)


def host_folder(index: int) -> str:
    """`host-00003`: where a host's own files are, within a checkpoint."""
    return f"host-{index:05d}"


def _own_folders(
    layout: Layout, stored: StoredCheckpoint, host_index: int, host_count: int
) -> dict[str, str]:
    """The folder with this host's files of each item that has some."""
    if layout.files and stored.manifest.hosts != host_count:
        _warn(
            f"{stored.path} was written by {stored.manifest.hosts} hosts and is read by "
            f"{host_count}: what each of them had of {', '.join(layout.files)} cannot be split "
            "anew, and only what they had in common is restored"
        )
        return {}
    stored.check_files(host_folder(host_index) + "/")
    folders = {}
    for name in layout.files:
        folder = os.path.join(stored.path, host_folder(host_index), name)
        if os.path.isdir(folder):
            folders[name] = folder
        else:
            _warn(f"{stored.path} holds no files of {name}, which stays as it is")
    return folders


def _match(
    layout: Layout, stored: StoredCheckpoint, tensors: dict[str, np.ndarray], strict: bool
) -> dict[str, np.ndarray]:
    """The value of each variable. What does not fit is an error or, where that will do, told."""
    stored_names = {name: name for name in stored.manifest.variables} | stored.manifest.aliases
    matched: dict[str, np.ndarray] = {}
    used: set[str] = set()
    errors: list[str] = []
    notes: list[str] = []
    rounded: list[str] = []
    for name, same in layout.all_names().items():
        named = layout.variables[name]
        problems = notes if named.kind in _DISPENSABLE else errors
        source = next((stored_names[n] for n in same if n in stored_names), None)
        shape = tuple(named.variable.shape)
        if source is None:
            near = hyperparams.near_names(name, stored_names)[:1]
            hint = f" (near: {near[0]})" if near and problems is errors else ""
            problems.append(f"not in the checkpoint: {name} {shape}{hint}")
            continue
        used.add(source)
        value = tensors[source]
        if value.shape != shape:
            problems.append(f"other shape: {name} is {value.shape} there and {shape} here")
            continue
        dtype = keras.backend.standardize_dtype(named.variable.dtype)
        if values.loses_precision(value.dtype.name, dtype):
            rounded.append(name)
        matched[name] = values.fit_dtype(value, dtype, name)
    for name, entry in stored.manifest.variables.items():
        # A whole item may be left out, as an evaluation leaves out the optimizer.
        if name not in used and name.split("/")[0] in layout.kinds:
            problems = notes if entry["kind"] in _DISPENSABLE else errors
            problems.append(f"only in the checkpoint: {name} {tuple(entry['shape'])}")
    if errors and strict:
        raise CheckpointError(_misfit(stored, layout, errors))
    if errors or notes:
        _warn(f"{stored.path} does not fit in full. " + _listed([*errors, *notes]))
    if rounded:
        _warn(f"{stored.path}: {len(rounded)} values are rounded, as {rounded[0]}")
    return matched


def _misfit(stored: StoredCheckpoint, layout: Layout, errors: list[str]) -> str:
    hints = []
    filled = {name.split("/")[0] for name in layout.variables}
    for item, kind in layout.kinds.items():
        if kind == "layer" and item not in filled:
            hints.append(f"\n  {item} has no variables yet: build it before it is restored.")
        held = [n for n in layout.variables if n.startswith(f"{item}/")]
        saved = [n for n in stored.manifest.variables if n.startswith(f"{item}/")]
        if kind == "optimizer" and len(held) < len(saved):
            hints.append(
                f"\n  {item} has fewer slots than the checkpoint: build it for all weights with "
                f"{item}.build(model.trainable_variables) before it is restored."
            )
        if item not in stored.manifest.items:
            hints.append(
                f"\n  The checkpoint has no item {item}; it has {', '.join(stored.manifest.items)}."
            )
    return (
        f"the checkpoint {stored.path} (step {stored.manifest.step}) does not fit. "
        + _listed(errors)
        + "".join(hints)
        + "\n  To start anew from its weights alone, name it in task.init_checkpoint."
    )


def _listed(problems: list[str]) -> str:
    more = f"\n  ... and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return "".join(f"\n  {problem}" for problem in problems[:_SHOWN]) + more


def _full(path: Any) -> str:
    path = os.fspath(path)
    if "://" in path:
        raise CheckpointError(
            f"{path}: checkpoints are folders of a local or mounted file system, not of a store "
            "with addresses of its own"
        )
    return os.path.abspath(path)


def _warn(message: str) -> None:
    warnings.warn(message, CheckpointWarning, stacklevel=4)
