"""CheckpointManager: the checkpoints of one run, written in the background."""

import concurrent.futures
import os
import re
import time
import warnings
from typing import Any, Optional

from absl import logging

from hortus.core.checkpoints import atomic_folder, store
from hortus.core.checkpoints.checkpoint import Checkpoint, PendingSave, host_folder, save_files
from hortus.core.checkpoints.errors import (
    CheckpointError,
    CheckpointWarning,
    CorruptCheckpointError,
    explain_os_errors,
)
from hortus.core.checkpoints.store import StoredCheckpoint
from hortus.core.run_folder import CHECKPOINT

_POLL_SECONDS = 0.05
# A host's own files on their way to the chief.
_PART = re.compile(rf"^{CHECKPOINT}-\d+\.host-(\d+)$")


class CheckpointManager:
    """Saves, restores and prunes the checkpoints `ckpt-<step>` of a directory.

    `save` returns as soon as all values are copied; one thread writes them, and what goes wrong
    there is raised by the next call. A checkpoint counts once its folder has its name, which
    happens in one instant, so that a kill at any moment leaves the previous ones and perhaps the
    new one.

    With several hosts every host has to call `save` for the same steps. The chief writes; the
    others hand it their own files, if there are items with `save_files`, and it commits once it
    has them all. All hosts restore. The directory has to be one that all of them see.

    Args:
        checkpoint: what to save.
        directory: where; made when the first checkpoint is saved.
        max_to_keep: how many to keep, the newest ones; None or 0 keeps all.
        asynchronous: whether to write in the background.
        is_chief: whether this host writes what all hosts share.
        host_index: the number of this host, from 0.
        host_count: the number of hosts.
        config: the config of the run, kept in each checkpoint.
        host_timeout: seconds for which the chief waits for the files of the other hosts.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: Optional[int] = 5,
        asynchronous: bool = True,
        is_chief: bool = True,
        *,
        host_index: int = 0,
        host_count: int = 1,
        config: Any = None,
        host_timeout: float = 600.0,
    ) -> None:
        self._checkpoint = checkpoint
        self._directory = os.path.abspath(os.fspath(directory))
        self._max_to_keep = max_to_keep or None
        self._asynchronous = asynchronous
        self._is_chief = is_chief
        self._host_index = host_index
        self._host_count = host_count
        self._config = config
        self._host_timeout = host_timeout
        self._executor: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._pending: Optional[concurrent.futures.Future] = None
        self._last_saved: Optional[int] = None
        self._broken: set[str] = set()
        self._is_clean = False

    @property
    def checkpoint(self) -> Checkpoint:
        """What is saved and restored."""
        return self._checkpoint

    @property
    def directory(self) -> str:
        """The folder that holds the checkpoints."""
        return self._directory

    @property
    def checkpoints(self) -> list[str]:
        """The paths of all committed checkpoints that can be used, oldest step first."""
        return [path for _, path in store.find_valid(self._directory, broken=self._broken)]

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """The path of the committed checkpoint with the highest step, if there is one."""
        paths = self.checkpoints
        return paths[-1] if paths else None

    def save(self, step: int, force: bool = False) -> str:
        """Saves a checkpoint and returns its path, at which it appears when it is committed.

        Args:
            step: the training step.
            force: whether to write it although there is one of this step already.

        Raises:
            CheckpointError: it, or the one before it, could not be written.
        """
        step = int(step)
        path = os.path.join(self._directory, store.folder_name(step))
        self.wait()
        if not force and (step == self._last_saved or self._is_saved(step, path)):
            return path
        self._clean_up()
        if self._is_chief:
            pending = self._checkpoint.prepare(
                path,
                step,
                config=self._config,
                host_index=self._host_index,
                host_count=self._host_count,
            )
            self._run(self._write, pending)
        else:
            self._hand_over(path)
        self._last_saved = step
        return path

    def restore(self, path: Optional[Any] = None) -> Optional[int]:
        """Restores one checkpoint and returns its step.

        Args:
            path: the folder of a checkpoint; by default the newest one that is whole. One that is
                damaged, or holds another step than its name says, is passed over with a warning,
                and written anew when its step comes again.

        Returns:
            The step, or None if there is no checkpoint.

        Raises:
            CorruptCheckpointError: `path` is damaged, or no checkpoint can be used.
            CheckpointError: the checkpoint does not fit the items.
        """
        self.wait()
        if path is not None:
            return self._restore_stored(StoredCheckpoint.open(os.path.abspath(os.fspath(path))))
        damaged: list[str] = []
        for named, candidate in reversed(store.find(self._directory)):
            try:
                step = self._restore_stored(StoredCheckpoint.open_found(named, candidate))
            except CorruptCheckpointError as error:
                self._broken.add(candidate)
                damaged.append(f"is {error.is_what}: {error}")
                continue
            for message in damaged:
                warnings.warn(
                    f"A checkpoint {message} Restored {candidate} (step {step}) instead.",
                    CheckpointWarning,
                    stacklevel=2,
                )
            return step
        if damaged:
            raise CorruptCheckpointError(
                f"every checkpoint in {self._directory} is damaged or misnamed:\n  "
                + "\n  ".join(damaged)
            )
        return None

    def wait(self) -> None:
        """Waits until what was saved is on the disk.

        Raises:
            CheckpointError: it could not be written. The next call no longer raises it.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            try:
                pending.result()
            except BaseException:
                self._last_saved = None
                raise

    def close(self) -> None:
        """Waits as `wait` does, and ends the thread."""
        try:
            self.wait()
        finally:
            if self._executor is not None:
                self._executor.shutdown()
                self._executor = None

    def __enter__(self) -> "CheckpointManager":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def _is_saved(self, step: int, path: str) -> bool:
        if path in self._broken or not os.path.isdir(path):
            return False
        try:
            StoredCheckpoint.open_found(step, path)
        except CorruptCheckpointError:
            return False
        return True

    def _restore_stored(self, stored: StoredCheckpoint) -> int:
        return self._checkpoint.restore_stored(
            stored, host_index=self._host_index, host_count=self._host_count
        )

    def _run(self, function: Any, *arguments: Any) -> None:
        if not self._asynchronous:
            function(*arguments)
            return
        if self._executor is None:
            # Its thread is joined when the interpreter exits: a pending write is finished.
            self._executor = concurrent.futures.ThreadPoolExecutor(1, "hortus-checkpoint")
        self._pending = self._executor.submit(self._logged, function, *arguments)

    def _logged(self, function: Any, *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as error:
            # The next call raises it; but there may be none for hours, or ever.
            logging.error("%s", error)
            raise

    def _write(self, pending: PendingSave) -> None:
        try:
            with explain_os_errors(f"write the checkpoint {pending.path}", self._directory):
                self._gather(pending)
        except BaseException:
            pending.abort()
            raise
        pending.write()
        self._broken.discard(pending.path)
        self._prune(pending.path)

    def _prune(self, newest: str) -> None:
        """Deletes the oldest ones, now that a newer one is there for sure."""
        if self._max_to_keep is None:
            return
        others = [path for path in self.checkpoints if path != newest]
        kept = {newest, *others[max(len(others) + 1 - self._max_to_keep, 0) :]}
        oldest = min(step for step, path in store.find(self._directory) if path in kept)
        for step, path in store.find(self._directory):
            # A damaged one goes when it would have gone in any case.
            if path not in kept and (path in others or step < oldest):
                try:
                    atomic_folder.remove(path)
                except OSError as error:
                    logging.warning("cannot delete the old checkpoint %s: %s", path, error)

    def _clean_up(self) -> None:
        """Removes what killed writers left, once; only who writes does so."""
        if self._is_clean or not os.path.isdir(self._directory):
            return
        self._is_clean = True
        with explain_os_errors("clean up", self._directory):
            if self._is_chief:
                atomic_folder.clean_up(self._directory)
            for name in os.listdir(self._directory):
                match = _PART.match(name)
                if match and int(match[1]) == self._host_index:
                    atomic_folder.discard(os.path.join(self._directory, name))

    def _hand_over(self, path: str) -> None:
        """Writes this host's own files where the chief collects them."""
        self._checkpoint.join_reading()
        layout = self._checkpoint.layout()
        if not layout.files:
            return
        part = self._part_of(path, self._host_index)
        with explain_os_errors(f"write the checkpoint {path}", self._directory):
            folder = atomic_folder.begin(part)
            try:
                save_files(layout, folder, self._host_index)
            except BaseException:
                atomic_folder.discard(folder)
                raise

        def commit() -> None:
            with explain_os_errors(f"write the checkpoint {path}", self._directory):
                atomic_folder.commit(folder, part)

        self._run(commit)

    def _gather(self, pending: PendingSave) -> None:
        """Moves the other hosts' files into the checkpoint."""
        others = set(range(self._host_count)) - {self._host_index}
        if not os.path.isdir(os.path.join(pending.folder, host_folder(self._host_index))):
            return
        give_up = time.monotonic() + self._host_timeout
        while others:
            for host in sorted(others):
                part = self._part_of(pending.path, host)
                if os.path.isdir(part):
                    name = host_folder(host)
                    os.rename(os.path.join(part, name), os.path.join(pending.folder, name))
                    atomic_folder.discard(part)
                    others.discard(host)
            if others and time.monotonic() > give_up:
                raise CheckpointError(
                    f"cannot write the checkpoint {pending.path}: after {self._host_timeout:.0f} s "
                    f"there are no files of host {', '.join(map(str, sorted(others)))}. Every host "
                    "has to save the same steps, into a directory that all of them see."
                )
            if others:
                time.sleep(_POLL_SECONDS)

    def _part_of(self, path: str, host: int) -> str:
        return f"{path}.{host_folder(host)}"
