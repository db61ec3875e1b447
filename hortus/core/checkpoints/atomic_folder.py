"""Folders that appear whole or not at all, also when the process is killed while it writes.

A folder is filled under a hidden temporary name beside its final place, every file and the folder
itself are flushed to the disk, and then it is renamed. The rename is the commit.
"""

import contextlib
import os
import re
import shutil
import socket
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Optional

# Somebody else's temporary folder, on a host whose processes cannot be looked up, is taken for
# abandoned after this long.
_ABANDONED_SECONDS = 3600.0
_CHUNK = 8 << 20
_TEMPORARY = re.compile(r"^\.(?P<name>.+)\.(?:tmp|trash)@(?P<host>[^@]*)@(?P<pid>\d+)$")
_FORMERLY = re.compile(r"^\.(?P<name>replacing)-(?P<pid>\d+)\.tmp$")
_REPLACED = ".replaced"


def temporary(path: str) -> str:
    """The temporary name for `path` of this process, in the same folder."""
    return _hidden(path, "tmp")


def begin(path: str) -> str:
    """Makes the empty temporary folder that becomes `path` at `commit`, and returns it."""
    folder = temporary(path)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    discard(folder)
    os.mkdir(folder)
    return folder


def commit(folder: str, path: str) -> None:
    """Makes the temporary `folder` appear as `path`, in place of what is there.

    At each moment either the old or the new content is to be found, as `path` or as what
    `replaced` returns for it.
    """
    flush_tree(folder)
    if os.path.isdir(path):
        discard(path + _REPLACED)
        os.rename(path, path + _REPLACED)
        os.rename(folder, path)
        flush_folder(os.path.dirname(path))
        discard(path + _REPLACED)
    else:
        os.rename(folder, path)
        flush_folder(os.path.dirname(path))


def replaced(path: str) -> str:
    """Where the old content of `path` is while `commit` puts new content in its place."""
    return path + _REPLACED


def original(path: str) -> str:
    """The reverse of `replaced`; other paths are returned as they are."""
    return path.removesuffix(_REPLACED)


def remove(path: str) -> None:
    """Deletes a committed folder, so that no half of it is ever seen under its name."""
    trash = _hidden(path, "trash")
    discard(trash)
    try:
        os.rename(path, trash)
    except FileNotFoundError:
        return
    discard(trash)


def discard(folder: str) -> None:
    """Deletes a temporary folder, or file, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.isdir(folder) and not os.path.islink(folder):
            shutil.rmtree(folder)
        else:
            os.remove(folder)


def clean_up(directory: str) -> list[str]:
    """Deletes what writers that are no longer alive have left in `directory`.

    Returns:
        The paths of what was deleted.
    """
    found = remove_abandoned(directory)
    for name in _entries(directory):
        path = os.path.join(directory, name)
        if name.endswith(_REPLACED) and os.path.isdir(path.removesuffix(_REPLACED)):
            discard(path)
            found.append(path)
    return found


def remove_abandoned(directory: str) -> list[str]:
    """Deletes the temporary files and folders of writers that are no longer alive.

    Safe in folders that hold other things too, as those names are ours alone.

    Returns:
        The paths of what was deleted.
    """
    found = []
    for name in _entries(directory):
        match = _TEMPORARY.match(name) or _FORMERLY.match(name)
        path = os.path.join(directory, name)
        host = match.groupdict().get("host", _hostname()) if match else ""
        if match and not _is_alive(host, int(match["pid"]), path):
            discard(path)
            found.append(path)
    return found


def write_file(path: str, chunks: Iterable[Any]) -> tuple[int, int]:
    """Writes bytes-like `chunks` to a new file and flushes it to the disk.

    Returns:
        The number of bytes and their CRC-32.
    """
    size, crc = 0, 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        for chunk in chunks:
            view = memoryview(chunk)
            for start in range(0, len(view), _CHUNK):
                # The checksum is taken while the bytes are in the cache of the processor.
                part = view[start : start + _CHUNK]
                crc = zlib.crc32(part, crc)
                size += len(part)
                while part:
                    part = part[os.write(descriptor, part) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size, crc


def checksum_file(path: str) -> tuple[int, int]:
    """The number of bytes of a file and their CRC-32."""
    size, crc = 0, 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            size, crc = size + len(chunk), zlib.crc32(chunk, crc)
    return size, crc


def replace_file(path: str, content: bytes) -> None:
    """Writes a small file so that it has its old or its new content at each moment."""
    new = temporary(path)
    try:
        write_file(new, [content])
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(new)
        raise
    flush_folder(os.path.dirname(path))


def flush_folder(folder: str) -> None:
    """Makes the names in `folder` lasting."""
    descriptor = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        # Some network file systems cannot flush a folder; the rename itself is still atomic.
        pass
    finally:
        os.close(descriptor)


def flush_tree(folder: str) -> None:
    """Makes all files and names in and below `folder` lasting."""
    for root, _, files in os.walk(folder):
        for name in files:
            descriptor = os.open(os.path.join(root, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        flush_folder(root)


def files_below(folder: str) -> Iterator[str]:
    """The relative paths of all files in and below `folder`, sorted, with forward slashes."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            yield os.path.relpath(os.path.join(root, name), folder).replace(os.sep, "/")


def _hidden(path: str, purpose: str) -> str:
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(folder, f".{name}.{purpose}@{_hostname()}@{os.getpid()}")


def _hostname() -> str:
    return socket.gethostname().replace("@", "_").replace("/", "_")


def _entries(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_alive(host: str, process: int, path: str) -> bool:
    if host != _hostname():
        newest = _newest_change(path)
        return newest is not None and time.time() - newest < _ABANDONED_SECONDS
    if process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _newest_change(path: str) -> Optional[float]:
    times = [os.stat(path).st_mtime] if os.path.isfile(path) else []
    for root, _, files in os.walk(path):
        for name in (root, *(os.path.join(root, file) for file in files)):
            with contextlib.suppress(OSError):
                times.append(os.stat(name).st_mtime)
    return max(times, default=None)
