"""Actions by name, which a config can ask for."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from hortus import registry
from hortus.core.actions.action import Action, as_actions

_Builder = TypeVar("_Builder", bound=Callable[[Any], Any])

_ACTIONS = registry.Registry("action", "hortus.core.actions")


@dataclasses.dataclass(frozen=True)
class Context:
    """What is known when an action is made."""

    params: Any
    """The experiment's config."""
    model_dir: str
    """Folder of the run."""
    trainer: Any
    """The `hortus.core.base_trainer.Trainer`, with `task`, `model`, `optimizer`, `global_step`."""
    is_chief: bool
    """Whether this host is the one that writes files."""


def register_action(name: str) -> Callable[[_Builder], _Builder]:
    """Decorates the function that builds an action, and makes it the action `name`.

        @actions.register_action("bell")
        def build_bell(context):
            '''Says that there is something new.'''
            return lambda logs: print("Look!")

    `trainer.train_actions=[bell]` does it after each training loop, `trainer.eval_actions=[bell]`
    after each evaluation.

    The builder receives:
        context: see `Context`.

    It returns an `Action`, or a function that is called with the logs: a dict of numbers by name.

    Args:
        name: what configs call it.
    """
    return registry.register(_ACTIONS, name)


def build_actions(names: Iterable[str], context: Context) -> list[Action]:
    """Builds the actions of these names.

    Raises:
        RegistryError: there is none of one of the names.
    """
    return as_actions([registry.lookup(_ACTIONS, name)(context) for name in names])


def registered_actions() -> dict[str, str]:
    """What each registered action does, by name."""
    _ACTIONS.load()
    return {name: registry.summary(build) for name, build in _ACTIONS.items()}
