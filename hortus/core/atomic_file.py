"""Files that have their old or their new content at every moment, also when a writer is killed."""

import contextlib
import os
from typing import Union

from hortus.core.checkpoints.atomic_folder import flush_folder, temporary


def replace(path: Union[str, "os.PathLike[str]"], content: bytes) -> None:
    """Writes a file, and its folder when that is not there."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    # What a killed writer leaves must not look like the file: readers go by parts of names. The
    # next run in the folder deletes it (`atomic_folder.remove_abandoned`).
    new = temporary(os.path.join(folder, "replacing"))
    try:
        with open(new, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    flush_folder(folder)
