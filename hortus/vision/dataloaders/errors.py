"""What can be wrong with data, said so that a user can mend it."""

import difflib
import os


class DataError(ValueError):
    """Data cannot be read as the config asks; `str(error)` is for the user."""


def near_paths(path: str) -> str:
    """`'. Did you mean a or b?'` for a path that is not there; what is there otherwise."""
    folder, name = os.path.split(path.rstrip("/"))
    try:
        names = sorted(os.listdir(folder or "."))[:2000]
    except OSError:
        return f"; the folder {folder} is not there either" if folder else ""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f". Did you mean {' or '.join(os.path.join(folder, one) for one in near)}?"
    listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f". In {folder or 'this folder'} there is: {listed or 'nothing'}"
