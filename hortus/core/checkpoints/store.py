"""Checkpoints on a disk: writing a folder, reading it back, finding those of a directory."""

import contextlib
import dataclasses
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Optional

import numpy as np

from hortus.core.checkpoints import atomic_folder, tensor_file
from hortus.core.checkpoints.errors import (
    CheckpointWarning,
    CorruptCheckpointError,
    MisnamedCheckpointError,
)
from hortus.core.checkpoints.manifest import NAME, Manifest
from hortus.core.run_folder import CHECKPOINT

WEIGHTS = "weights.safetensors"
_ADVICE = (
    " Delete the folder {folder} and restore from an older checkpoint, or copy the file again from "
    "where it is whole."
)


@dataclasses.dataclass(frozen=True)
class StoredCheckpoint:
    """A committed checkpoint folder. `path` is the folder, `manifest` what it says of itself."""

    path: str
    manifest: Manifest

    @classmethod
    def open(cls, path: str) -> "StoredCheckpoint":
        """Opens a checkpoint and looks whether all its files have their lengths.

        Raises:
            CorruptCheckpointError: something is missing or damaged.
        """
        with _advice(path):
            stored = cls(path, Manifest.read(path))
            for name, entry in stored.manifest.files.items():
                file = os.path.join(path, name)
                try:
                    size = os.stat(file).st_size
                except OSError as error:
                    raise CorruptCheckpointError(f"{file}: {error.strerror}.") from error
                if size != entry["bytes"]:
                    raise CorruptCheckpointError(
                        f"{file} has {size} bytes instead of {entry['bytes']}: it is truncated or "
                        "edited."
                    )
            return stored

    @classmethod
    def open_found(cls, step: int, path: str) -> "StoredCheckpoint":
        """As `open`, for what `find` has found.

        Raises:
            MisnamedCheckpointError: its content is of another step than its name says.
        """
        stored = cls.open(path)
        if stored.manifest.step != step:
            raise MisnamedCheckpointError(
                f"{path} has the name of step {step}, but its content is of step "
                f"{stored.manifest.step}: it was renamed, or moved here. Give it a name that says "
                f"{stored.manifest.step}, or delete it."
            )
        return stored

    def tensors(self) -> dict[str, np.ndarray]:
        """All tensors by stored name, after the checksum of their file was found right."""
        entry = self.manifest.files.get(WEIGHTS)
        with _advice(self.path):
            if entry is None:
                raise CorruptCheckpointError(f"{self.path} lists no {WEIGHTS}.")
            path = os.path.join(self.path, WEIGHTS)
            tensors, _ = tensor_file.read_tensors(path, entry["bytes"], int(entry["crc32"], 16))
            if missing := sorted(set(self.manifest.variables) - set(tensors)):
                raise CorruptCheckpointError(f"{path} lacks {', '.join(missing[:3])}.")
            return tensors

    def check_files(self, prefix: str) -> None:
        """Checks the checksums of all files whose path begins with `prefix`."""
        with _advice(self.path):
            for name, entry in self.manifest.files.items():
                if name.startswith(prefix):
                    path = os.path.join(self.path, name)
                    found = atomic_folder.checksum_file(path)
                    if found != (entry["bytes"], int(entry["crc32"], 16)):
                        raise CorruptCheckpointError(f"{path} was changed after it was written.")


def write(
    folder: str,
    manifest: Manifest,
    tensors: Mapping[str, np.ndarray],
    metadata: Optional[Mapping[str, str]] = None,
) -> None:
    """Fills the temporary `folder`, in which the hosts' own files already are."""
    files = {}
    for name in atomic_folder.files_below(folder):
        files[name] = _entry(*atomic_folder.checksum_file(os.path.join(folder, name)))
    path = os.path.join(folder, WEIGHTS)
    files[WEIGHTS] = _entry(*tensor_file.write_tensors(path, tensors, metadata))
    manifest = dataclasses.replace(manifest, files=files)
    atomic_folder.write_file(os.path.join(folder, NAME), [manifest.to_bytes()])


def folder_name(step: int, prefix: str = CHECKPOINT) -> str:
    """`ckpt-1000`."""
    return f"{prefix}-{step}"


def find(directory: str, prefix: str = CHECKPOINT) -> list[tuple[int, str]]:
    """Step and path of each committed checkpoint folder of a directory, by step, unchecked."""
    pattern = re.compile(rf"^{re.escape(prefix)}-(\d+)$")
    found: dict[int, str] = {}
    for name in _names(directory):
        path = os.path.join(directory, name)
        match = pattern.match(atomic_folder.original(name))
        # "ckpt-1" sorts before "ckpt-1.replaced": old content counts only while new is put there.
        if match and os.path.isdir(path):
            found.setdefault(int(match[1]), path)
    return sorted(found.items())


def find_valid(
    directory: str, prefix: str = CHECKPOINT, broken: Iterable[str] = ()
) -> list[tuple[int, str]]:
    """As `find`, without those that are damaged as far as lengths tell, and without `broken`.

    One whose content is of another step than its name says is left out with a warning.
    """
    valid, excluded = [], set(broken)
    for step, path in find(directory, prefix):
        if path not in excluded:
            try:
                StoredCheckpoint.open_found(step, path)
            except MisnamedCheckpointError as error:
                warnings.warn(f"A checkpoint is misnamed: {error}", CheckpointWarning, stacklevel=2)
            except CorruptCheckpointError:
                continue
            else:
                valid.append((step, path))
    return valid


def _entry(size: int, crc: int) -> dict[str, object]:
    return {"bytes": size, "crc32": f"{crc:08x}"}


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []


@contextlib.contextmanager
def _advice(folder: str) -> Iterator[None]:
    """Adds to the message of a damaged checkpoint what to do about it."""
    try:
        yield
    except CorruptCheckpointError as error:
        raise CorruptCheckpointError(str(error) + _ADVICE.format(folder=folder)) from error
