"""A full disk, which TensorFlow reports with the same error as a lack of memory."""

import errno
import os
import shutil

_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
_WORDS = tuple(os.strerror(number) for number in _ERRNOS)


class DiskFullError(OSError):
    """There is no space left; `str(error)` is for the user."""


def is_full(error: BaseException) -> bool:
    """Whether an error of the system or of a library says that no space is left on a disk."""
    if type(error).__module__.partition(".")[0] == "hortus":
        return isinstance(error, DiskFullError)  # others of ours say what to do already
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _ERRNOS
    return any(words in str(error) for words in _WORDS)


def full_error(place: "str | os.PathLike[str] | None") -> DiskFullError:
    """What to tell a user whose disk is full.

    Args:
        place: the file or folder that was written, which need not exist; None if nobody knows.
    """
    whose = "a disk" if place is None else f"the disk of {os.path.abspath(place)}"
    existing = os.path.abspath(place or ".")
    while not os.path.isdir(existing):
        existing = os.path.dirname(existing)
    try:
        free = f" ({shutil.disk_usage(existing).free / 1e6:.0f} MB are free)" if place else ""
    except OSError:
        free = ""
    return DiskFullError(
        f"{whose} is full{free}: free some space, then start the same command again"
    )
