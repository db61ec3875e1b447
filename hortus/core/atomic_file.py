"""Files that have their old or their new content at every moment, also when a writer is killed."""

import contextlib
import os
from typing import Union

from hortus.core.checkpoints.atomic_folder import flush_folder


def replace(path: Union[str, "os.PathLike[str]"], content: bytes) -> None:
    """Writes a file, and its folder when that is not there."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    # What a killed writer leaves must not look like the file: readers go by parts of names.
    temporary = os.path.join(folder, f".replacing-{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    flush_folder(folder)
