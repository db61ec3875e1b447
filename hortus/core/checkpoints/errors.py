"""What can go wrong with a checkpoint, said so that a user can mend it."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from typing import Optional


class CheckpointError(RuntimeError):
    """A checkpoint cannot be written, or does not fit what it is restored into."""


class CorruptCheckpointError(CheckpointError):
    """A checkpoint is damaged: truncated, edited or incomplete."""

    is_what = "damaged"
    """How a message calls such a checkpoint."""


class MisnamedCheckpointError(CorruptCheckpointError):
    """A checkpoint's content is of another step than the name of its folder says."""

    is_what = "misnamed"


class CheckpointWarning(UserWarning):
    """Something was restored otherwise than asked for; training can go on."""


@contextlib.contextmanager
def explain_os_errors(doing: str, folder: str) -> Iterator[None]:
    """Turns an OSError of the block into a `CheckpointError` with advice.

    Args:
        doing: what was tried, as in "cannot write the checkpoint /runs/a/ckpt-10".
        folder: where; its disk is looked at for the advice.
    """
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"cannot {doing}: {error.strerror or error}.{_advice(error, folder)}"
        ) from error


def _advice(error: OSError, folder: str) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = _free_megabytes(folder)
        left = "" if free is None else f" {free:.0f} MB are free on the disk of {folder}."
        return (
            f"{left} The checkpoints before it are untouched. Free some space (a smaller "
            "trainer.max_to_keep keeps fewer checkpoints), then start the same command again."
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f" Check that {folder} is writable, or choose another model_dir."
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return f" A file stands where a folder is needed: look at {error.filename or folder}."
    if error.errno == errno.EFBIG:
        return " The system limits the size of a file (see `ulimit -f`)."
    return f" Path: {error.filename or folder}."


def _free_megabytes(folder: str) -> Optional[float]:
    while folder and not os.path.exists(folder):
        folder = os.path.dirname(folder)
    try:
        return shutil.disk_usage(folder or ".").free / 1e6
    except OSError:
        return None
