"""Summaries for TensorBoard, on both engines: scalars by default, sub-folders for nested logs."""

import abc
import contextlib
import contextvars
import copy
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional

import numpy as np
from absl import logging

from hortus.core import event_file
from hortus.core.logs import Logs, as_scalar

_default_writer: contextvars.ContextVar[Optional["SummaryWriter"]] = contextvars.ContextVar(
    "default_writer", default=None
)


def scalar(name: str, value: Any, step: Any) -> None:
    """Writes a number to the writer whose `as_default` block is open; nowhere without one."""
    if (writer := _default_writer.get()) is not None:
        writer.scalar(name, value, step)


class SummaryWriter:
    """Writes the summaries of one folder.

    It has methods of its own, which need no TensorFlow, and serves `tf.summary` too:

        writer.scalar("loss", 0.5, step=100)
        with writer.as_default():
            tf.summary.image("input", images, step=100)

    Args:
        folder: where the event files go; None drops all summaries.
    """

    def __init__(self, folder: Optional[str]):
        self.folder = folder
        self._file = None if folder is None else event_file.EventFile(folder)
        self._tensorflow_writer: Any = None
        self._left_out: set[str] = set()

    def scalar(self, name: str, value: Any, step: Any) -> None:
        """Writes a number. Other values are left out, with a warning once per name."""
        number = as_scalar(value)
        if number is None:
            if name not in self._left_out:
                logging.warning("No summary of %r: it is no single number", name)
            self._left_out.add(name)
        else:
            self._write(event_file.scalar(name, float(number)), step)

    def image(self, name: str, images: Any, step: Any) -> None:
        """Writes pictures.

        Args:
            name: tag of a single picture; several get `name/0`, `name/1`, ...
            images: [n, height, width, channels], uint8 or floats from 0 to 1.
            step: the global step.
        """
        self._write(event_file.image(name, images), step)

    @contextlib.contextmanager
    def as_default(self, step: Optional[Any] = None) -> Iterator["SummaryWriter"]:
        """Makes this the writer of `tf.summary` and of a manager's `summary_fn`.

        It loads TensorFlow, where that is installed.

        Args:
            step: the step for calls of `tf.summary` that name none.
        """
        token = _default_writer.set(self)
        try:
            with self._tensorflow_default(step):
                yield self
        finally:
            _default_writer.reset(token)

    def flush(self) -> None:
        """Returns when everything is on disk."""
        if self._file is None or self.folder is None:
            return
        self._file.flush()
        if self._tensorflow_writer is not None:
            self._tensorflow_writer.flush()
            for path in event_file.paths(self.folder):
                event_file.sync(path)

    def close(self) -> None:
        self.flush()
        if self._file is not None:
            self._file.close()
        if self._tensorflow_writer is not None:
            self._tensorflow_writer.close()
            self._tensorflow_writer = None

    def _write(self, summary: Any, step: Any) -> None:
        if self._file is None:
            return
        if self._tensorflow_writer is None:
            self._file.write(summary, _as_int(step))
            return
        import tensorflow as tf

        with self._tensorflow_writer.as_default():
            tf.summary.experimental.write_raw_pb(summary.SerializeToString(), step=_as_int(step))

    def _tensorflow_default(self, step: Optional[Any]) -> contextlib.AbstractContextManager:
        try:
            import tensorflow as tf
        except ImportError:
            return contextlib.nullcontext()
        if self._file is None:
            return tf.summary.create_noop_writer().as_default()
        if self._tensorflow_writer is None:
            # TensorBoard follows one growing file per folder, so TensorFlow's takes over.
            self._file.close()
            self._tensorflow_writer = tf.summary.create_file_writer(self.folder)
        return self._tensorflow_writer.as_default(None if step is None else _as_int(step))


class SummaryManagerInterface(abc.ABC):
    """What the controller asks of a summary manager; subclass it to write your own way."""

    @abc.abstractmethod
    def flush(self) -> None:
        """Puts all summaries on disk."""

    @abc.abstractmethod
    def summary_writer(self, relative_path: str = "") -> Any:
        """The writer of a sub-folder; it has `as_default()`, as writers of `tf.summary` have.

        Args:
            relative_path: the sub-folder; empty for the summary folder itself.
        """

    @abc.abstractmethod
    def write_summaries(self, summary_dict: Logs) -> None:
        """Writes the values at the present step; a nested dictionary goes to a sub-folder."""

    def close(self) -> None:  # noqa: B027, a hook
        """Closes its files, when a run has ended. Optional."""

    def count_by(self, global_step: Any) -> None:
        """Tells the variable that counts the steps; called once, by a controller. Optional."""
        del global_step

    def rewind(self, step: int) -> None:
        """Drops what was written past `step`, to which training went back. Optional."""
        del step

    def in_folder(self, folder: str) -> Optional["SummaryManagerInterface"]:
        """One of the same kind that writes to another folder, for a trial. Optional."""
        del folder
        return None


class SummaryManager(SummaryManagerInterface):
    """Writes summaries with one function, nested dictionaries to sub-folders.

    TensorBoard shows each sub-folder as a curve of its own.

    Args:
        summary_dir: where the event files go; None writes nothing, as on hosts that are not chief.
        summary_fn: called as `summary_fn(name, value, step=step)` while the writer is the default
            of `tf.summary`. None writes numbers, and needs no TensorFlow.
        global_step: a variable or number; None until the controller sets it.
    """

    def __init__(
        self,
        summary_dir: Optional["str | os.PathLike[str]"],
        summary_fn: Optional[Callable[..., Any]] = None,
        global_step: Optional[Any] = None,
    ):
        self._enabled = summary_dir is not None
        self._summary_dir = None if summary_dir is None else os.fspath(summary_dir)
        self._summary_fn = summary_fn or scalar
        self._global_step = global_step
        self._summary_writers: dict[str, SummaryWriter] = {}

    @property
    def summary_dir(self) -> Optional[str]:
        return self._summary_dir

    @property
    def global_step(self) -> Optional[Any]:
        """The step of the summaries."""
        return self._global_step

    @global_step.setter
    def global_step(self, value: Any) -> None:
        self._global_step = value

    def count_by(self, global_step: Any) -> None:
        if self._global_step is None:
            self._global_step = global_step

    def flush(self) -> None:
        for writer in self._summary_writers.values():
            writer.flush()

    def close(self) -> None:
        for writer in self._summary_writers.values():
            writer.close()
        self._summary_writers.clear()

    def summary_writer(self, relative_path: str = "") -> SummaryWriter:
        if relative_path not in self._summary_writers:
            folder = self._summary_dir and os.path.join(self._summary_dir, relative_path)
            self._summary_writers[relative_path] = SummaryWriter(folder)
        return self._summary_writers[relative_path]

    def write_summaries(self, summary_dict: Logs) -> None:
        if not self._enabled:
            return
        if self._global_step is None:
            raise ValueError("a summary needs a step: give the summary manager a global_step")
        self._write_folder(summary_dict, "", _as_int(self._global_step))

    def rewind(self, step: int) -> None:
        self.close()
        if self._summary_dir is not None:
            event_file.rewind(self._summary_dir, step)

    def in_folder(self, folder: str) -> "SummaryManager":
        other = copy.copy(self)
        other._summary_dir, other._enabled, other._summary_writers = folder, True, {}
        return other

    def write_summary(self, writer: SummaryWriter, name: str, value: Any, step: int) -> None:
        """Writes one value; the place where a subclass treats some values in its own way."""
        if self._summary_fn is scalar:
            writer.scalar(name, value, step)
            return
        with writer.as_default(step):
            self._summary_fn(name, value, step=step)

    def _write_folder(self, summary_dict: Logs, relative_path: str, step: int) -> None:
        for name, value in summary_dict.items():
            if isinstance(value, Mapping):
                self._write_folder(value, os.path.join(relative_path, str(name)), step)
            else:
                self.write_summary(self.summary_writer(relative_path), str(name), value, step)


def _as_int(step: Any) -> int:
    number = as_scalar(step)
    if number is None:
        raise ValueError(f"a step is one whole number, got shape {np.shape(step)}")
    return int(number)
