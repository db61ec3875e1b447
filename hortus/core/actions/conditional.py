"""An action that is done only sometimes."""

from collections.abc import Callable
from typing import Any

from hortus.core.actions.action import Action, Actions, as_actions
from hortus.core.logs import Logs


class ConditionalAction(Action):
    """Does one action or several whenever a condition holds.

        ConditionalAction(NewBestMetric("accuracy", filename=...), ExportAction(...))

    Args:
        condition: called with the logs; `NewBestMetric` is one.
        action: what to do; a list is done in order.
    """

    def __init__(self, condition: Callable[[Logs], Any], action: Actions):
        self.condition = as_actions(condition)[0]
        self.actions = as_actions(action)

    def bind(self, controller: Any) -> None:
        super().bind(controller)
        for part in self._parts():
            part.bind(controller)

    def begin(self) -> None:
        for part in self._parts():
            part.begin()

    def poll(self) -> None:
        for part in self._parts():
            part.poll()

    def rewind(self, step: int) -> None:
        for part in self._parts():
            part.rewind(step)

    def end(self) -> None:
        for part in self._parts():
            part.end()

    def __call__(self, logs: Logs) -> None:
        if self.condition(logs):
            for action in self.actions:
                action(logs)

    def _parts(self) -> list[Action]:
        return [self.condition, *self.actions]
