"""Paths and patterns of a config -> files."""

import os
from collections.abc import Sequence

import tensorflow as tf

from hortus.vision.dataloaders.errors import DataError, near_paths

_WILDCARDS = frozenset("*?[")


def split_paths(input_path: str | Sequence[str]) -> list[str]:
    """The paths or patterns of a list, or of one string with commas."""
    paths = input_path.split(",") if isinstance(input_path, str) else list(input_path)
    paths = [path.strip() for path in paths if path.strip()]
    if not paths:
        raise DataError("input_path is empty: where is the data?")
    return paths


def match_paths(input_path: str | Sequence[str]) -> list[str]:
    """All that paths and patterns match, in order and each once; nothing is an error."""
    matched: dict[str, None] = {}
    for pattern in split_paths(input_path):
        found = sorted(tf.io.gfile.glob(pattern))
        if not found:
            what = "no file matches" if _WILDCARDS & set(pattern) else "no such file"
            raise DataError(f"{pattern}: {what}{near_paths(pattern)}")
        matched.update(dict.fromkeys(found))
    return list(matched)


def match_files(input_path: str | Sequence[str]) -> list[str]:
    """Like `match_paths`, for files: a folder is an error."""
    files = match_paths(input_path)
    for path in files:
        if tf.io.gfile.isdir(path):
            raise DataError(
                f"{path} is a folder, where files are expected. Give a pattern such as "
                f"{path.rstrip('/')}/*.tfrecord, or set file_type to folder if it holds a "
                "sub-folder of images for each class"
            )
    return files


def check_inside(names: Sequence[str], origin: str, allow_outside: bool = False) -> None:
    """Checks that the file names which an annotation file tells stay below their folder.

    Whoever writes such a file could have any file of the machine read otherwise.

    Args:
      names: paths, each to be joined to the folder of the images.
      origin: the file that tells them, for the message.
      allow_outside: lets them lead anywhere, as `allow_paths_outside` of the data says.

    Raises:
      DataError: a name is absolute, or leads out of its folder by `..`.
    """
    for name in names:
        if not isinstance(name, str) or not name or "\0" in name:
            raise DataError(f"{origin}: {name!r} is no name of a file")
        leaves = os.path.isabs(name) or os.path.normpath(name).split(os.sep)[0] == os.pardir
        if leaves and not allow_outside:
            raise DataError(
                f"{origin}: {name!r} leads out of the folder of the images. If that is meant, and "
                "you trust the file, set allow_paths_outside to true"
            )
