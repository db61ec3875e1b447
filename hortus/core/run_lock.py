"""One writer per run: a lock file in the folder, which outlives no process that made it.

The file says who holds the lock. A process of the same machine is looked up by its number: one that
was killed holds nothing. Of a process elsewhere only its sign of life can be seen, the file's time,
which a thread renews every `BEAT` seconds: silent for `SILENCE` seconds, it counts as dead. Clocks
of different machines are never compared, only times that the folder's own file system gives.
"""

import contextlib
import json
import os
import shlex
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any, Optional

from absl import logging

from hortus.core.run_folder import RunFolder

BEAT, SILENCE = 10.0, 120.0
_POLL = 0.5


class RunLockedError(RuntimeError):
    """Somebody else writes to the run; `str(error)` is for the user."""


class RunLock:
    """Held by the process that trains in a folder; `with` takes and gives it back.

    Readers need none of it: whoever predicts, reports or evaluates goes on beside a training.

    Args:
        folder: of the run. It is made where it is not there, and gone again where nothing was
            written to it.
        beat: seconds between two signs of life.
        silence: seconds without one after which a holder on another machine counts as dead.
    """

    def __init__(
        self, folder: "str | os.PathLike[str]", beat: float = BEAT, silence: float = SILENCE
    ):
        self.folder = RunFolder(folder)
        self.beat, self.silence = beat, silence
        self._token = ""
        self._made: list[str] = []
        self._end = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._lost: Optional[dict[str, Any]] = None

    def __enter__(self) -> "RunLock":
        self.acquire()
        return self

    def __exit__(self, *unused: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Takes the lock, also from a holder that is dead.

        Raises:
            RunLockedError: somebody alive has it.
        """
        self._make_folder()
        self._token = uuid.uuid4().hex
        mine = f"{self.folder.lock}.{self._token}"
        try:
            with open(mine, "w", encoding="utf-8") as file:
                json.dump({"token": self._token, **_myself()}, file)
            self._take(mine)
        except BaseException:
            self._remove_folder()
            raise
        finally:
            with contextlib.suppress(OSError):
                os.unlink(mine)
        self._end.clear()
        self._thread = threading.Thread(target=self._keep_alive, name="hortus-lock", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises a `RunLockedError` if another process has taken the lock for dead and over."""
        if self._lost is not None:
            raise RunLockedError(
                f"{self.folder}: this process gave no sign of life for a while, and "
                f"{_who(self._lost)} has gone on with the run. Nothing more is written here."
            )

    def release(self) -> None:
        """Gives the lock back."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with _alone(self.folder):
            holder = _read(self.folder.lock)
            if holder is not None and holder.get("token") == self._token:
                with contextlib.suppress(OSError):
                    os.unlink(self.folder.lock)
        self._remove_folder()

    # ---- taking it --------------------------------------------------------------------------

    def _take(self, mine: str) -> None:
        """Puts the file `mine` in the lock's place."""
        first: Optional[float] = None  # the holder's sign of life when it was first seen
        missed = 0
        while True:
            if self._put(mine):
                return
            holder, sign = _read(self.folder.lock), _time_of(self.folder.lock)
            if holder is None or sign is None:  # it has just been given back
                missed += 1
                if missed > 100:
                    raise RunLockedError(
                        f"{self.folder.lock} can be neither made nor read: it may be a link that "
                        "leads nowhere. Delete it"
                    )
                continue
            first = sign if first is None else first
            reason = self._reason_to_take(holder, sign, mine)
            if reason is not None:
                if self._remove(holder.get("token")):
                    logging.warning("%s: %s. Its lock is taken over.", self.folder, reason)
            elif _is_here(holder) or sign != first:
                raise RunLockedError(self._refusal(holder))
            else:
                time.sleep(min(_POLL, self.beat))
                os.utime(mine)  # what time it is there

    def _put(self, mine: str) -> bool:
        try:
            os.link(mine, self.folder.lock)  # in one instant, also on network file systems
        except FileExistsError:
            return False
        except OSError:  # there are no links here
            with contextlib.suppress(FileExistsError), open(self.folder.lock, "x") as file:
                with open(mine, encoding="utf-8") as source:
                    file.write(source.read())
                return True
            return False
        return True

    def _reason_to_take(self, holder: dict[str, Any], sign: float, mine: str) -> Optional[str]:
        """Why the holder counts as dead; None if it may be alive."""
        if _is_here(holder):
            return None if _is_alive(holder) else f"{_who(holder)} is gone"
        silent = (_time_of(mine) or sign) - sign
        if silent < self.silence:
            return None
        return f"{_who(holder)} has given no sign of life for {silent:.0f} s"

    def _remove(self, token: Any) -> bool:
        """Removes the lock of a dead holder, unless somebody else was quicker."""
        with _alone(self.folder):
            aside = f"{self.folder.lock}.{self._token}.old"
            try:
                os.rename(self.folder.lock, aside)
            except FileNotFoundError:
                return False
            try:
                found = _read(aside)
                if found is None or found.get("token") == token:
                    return True
                with contextlib.suppress(OSError):
                    os.link(aside, self.folder.lock)  # a new one: back with it
                return False
            finally:
                os.unlink(aside)

    def _refusal(self, holder: dict[str, Any]) -> str:
        command = f" by `{holder['command']}`" if holder.get("command") else ""
        return (
            f"{self.folder} is being written to: {_who(holder)} has trained in it since "
            f"{_when(holder.get('started'))}{command}. Wait for it, stop it, or train in another "
            f"folder. If it is not running, delete {self.folder.lock}"
        )

    # ---- while it is held -------------------------------------------------------------------

    def _keep_alive(self) -> None:
        while not self._end.wait(self.beat):
            holder = _read(self.folder.lock)
            if holder is not None and holder.get("token") == self._token:
                with contextlib.suppress(OSError):  # the next time, then
                    os.utime(self.folder.lock)
            elif holder is not None:
                self._lost = holder
                return

    def _make_folder(self) -> None:
        path = os.path.abspath(self.folder)
        while path and not os.path.isdir(path):
            self._made.append(path)
            path = os.path.dirname(path)
        os.makedirs(self.folder, exist_ok=True)

    def _remove_folder(self) -> None:
        """Removes the folders that were made for nothing."""
        for path in self._made:
            try:
                os.rmdir(path)
            except OSError:
                break  # there is something in it
        self._made = []


def holder_of(folder: "str | os.PathLike[str]") -> Optional[str]:
    """Who trains in a folder, in words; None if nobody does, as far as can be seen."""
    holder = _read(RunFolder(folder).lock)
    if holder is None or (_is_here(holder) and not _is_alive(holder)):
        return None
    return _who(holder)


def _myself() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "machine": _machine(),
        "pid": os.getpid(),
        "process": _start_of(os.getpid()),
        "started": time.time(),
        "command": shlex.join([os.path.basename(sys.argv[0]), *sys.argv[1:]]),
    }


def _read(path: str) -> Optional[dict[str, Any]]:
    """What a lock says; None if there is none, nothing if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _time_of(path: str) -> Optional[float]:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def _is_here(holder: dict[str, Any]) -> bool:
    """Whether its process would be seen from here."""
    return holder.get("machine") == _machine() and isinstance(holder.get("pid"), int)


def _is_alive(holder: dict[str, Any]) -> bool:
    """Whether the process runs, and is not a later one with the same number."""
    pid = holder["pid"]
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # somebody else's
    start = _start_of(pid)
    return start == holder.get("process") if start else True


def _start_of(pid: int) -> str:
    """When a process was started, in ticks of the system; empty where that cannot be told.

    A process that has ended, and that nobody has asked for its result, has none.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if fields[0] in "ZX" else fields[19]


def _machine() -> str:
    """Where process numbers mean the same: a system since it was started, or a container in it."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        parts.append(file.read().strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _who(holder: dict[str, Any]) -> str:
    if "pid" not in holder:
        return "somebody unknown"
    here = _is_here(holder)
    if here and holder["pid"] == os.getpid():
        return f"this process ({os.getpid()})"
    return f"process {holder['pid']} on {'this machine' if here else holder.get('host')}"


def _when(seconds: Any) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (TypeError, ValueError, OverflowError, OSError):
        return "an unknown time"


@contextlib.contextmanager
def _alone(folder: RunFolder) -> Iterator[None]:
    """Keeps other processes of this machine from removing a lock at the same time."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
