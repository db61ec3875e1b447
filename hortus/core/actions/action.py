"""What the controller tells an action, and how it takes plain functions for actions."""

from collections.abc import Callable, Iterable
from typing import Any, Optional, Union

from hortus.core.logs import Logs


class Action:
    """Something that is done with the logs of each training loop, or of each evaluation.

    All methods but `__call__` may be left as they are.
    """

    controller: Any = None
    """The controller that the action was given to."""

    def bind(self, controller: Any) -> None:
        """Called once, by the controller's constructor."""
        self.controller = controller

    def begin(self) -> None:
        """Called before training, at the step from which it goes on."""

    def poll(self) -> None:
        """Called often, also amid a long loop, where the action may ask the controller to stop."""

    def rewind(self, step: int) -> None:
        """Called when training goes on from `step`: what came later is going to happen again."""

    def end(self) -> None:
        """Called after training, also after an error."""

    def __call__(self, logs: Logs) -> Any:
        raise NotImplementedError


class FunctionAction(Action):
    """A plain function as an action."""

    def __init__(self, function: Callable[[Logs], Any]):
        self.function = function

    def __call__(self, logs: Logs) -> Any:
        return self.function(logs)


Actions = Optional[Union[Callable[[Logs], Any], Iterable[Callable[[Logs], Any]]]]


def as_actions(actions: Actions) -> list[Action]:
    """One action or several, functions among them, as a list of `Action`s."""
    if actions is None:
        return []
    several = [actions] if callable(actions) else list(actions)
    return [a if isinstance(a, Action) else FunctionAction(a) for a in several]
