"""The commands of `hortus` by name: its own, and those that a user's modules add."""

from collections.abc import Callable
from typing import Any, TypeVar

from hortus import registry

_Command = TypeVar("_Command", bound=Callable[..., Any])

COMMANDS = registry.Registry("command")


def register_command(name: str) -> Callable[[_Command], _Command]:
    """Decorates a function that becomes the command `hortus <name>`.

        @commands.register_command("greet")
        def greet(who: Annotated[str, typer.Argument(help="Whom to greet.")] = "you") -> None:
            '''Greet somebody.'''
            print(f"Hello, {who}")

        hortus --import my_module greet Eve

    What it receives are the arguments and options that its annotations describe, as typer reads
    them; a `typer.Typer` makes a group of commands. The first line of its docstring is its help. It
    returns nothing; `raise typer.Exit(1)` ends with an exit code. A mistake of the user raises
    `ConfigError`, `RegistryError`, `DataError`, `OSError` or `hortus.cli.errors.CommandError` with
    a finished sentence. It imports what is heavy inside.

    Args:
        name: of the command.
    """
    return registry.register(COMMANDS, name)


def described() -> dict[str, str]:
    """What each command does, by name."""
    return {name: _summary(command) for name, command in COMMANDS.items()}


def _summary(command: Any) -> str:
    info = getattr(command, "info", None)  # a group keeps its help there
    return registry.summary(command) if info is None else str(info.help or "")
