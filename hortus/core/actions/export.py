"""Exports the model during training."""

import os
from collections.abc import Callable
from typing import Any

from hortus.core.actions.action import Action
from hortus.core.checkpoints import atomic_folder
from hortus.core.logs import Logs


class ExportAction(Action):
    """Exports into `directory`/STEP, a folder that appears whole or not at all.

    Args:
        export_fn: called with the path of an empty folder, which it fills.
        directory: holds the numbered folders.
        max_to_keep: how many of them stay, the newest; 0 keeps all.
        is_chief: whether this host exports; the others do nothing.
    """

    def __init__(
        self,
        export_fn: Callable[[str], Any],
        directory: "str | os.PathLike[str]",
        max_to_keep: int = 5,
        is_chief: bool = True,
    ):
        self.export_fn = export_fn
        self.directory = os.fspath(directory)
        self.max_to_keep = max_to_keep
        self.is_chief = is_chief

    @property
    def exports(self) -> list[str]:
        """The folders of all exports, oldest first."""
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        numbers = sorted(int(name) for name in names if name.isdecimal())
        return [os.path.join(self.directory, str(number)) for number in numbers]

    def __call__(self, logs: Logs) -> None:
        if not self.is_chief:
            return
        path = os.path.join(self.directory, str(self.controller.step))
        atomic_folder.clean_up(self.directory)
        temporary = atomic_folder.begin(path)
        try:
            self.export_fn(temporary)
            atomic_folder.commit(temporary, path)
        except BaseException:
            atomic_folder.discard(temporary)
            raise
        if self.max_to_keep:
            for old in self.exports[: -self.max_to_keep]:
                atomic_folder.remove(old)
