"""Mistakes of a user become one plain message on stderr; faults of the program stay tracebacks."""

import contextlib
import dis
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any, Optional

from hortus import hyperparams
from hortus.engine import disk

USER_MISTAKE = 2
BROKEN_PIPE = 1  # the same as typer gives when it notices first
# Named, not imported: to tell a mistake must not load what only training needs.
_MISTAKES = (
    ("hortus.registry", "RegistryError"),
    ("hortus.core.actions.recovery", "DivergedError"),
    ("hortus.core.checkpoints.errors", "CheckpointError"),
    ("hortus.core.run_lock", "RunLockedError"),
    ("hortus.engine.environment", "EngineError"),
    ("hortus.vision.dataloaders.errors", "DataError"),
)


class CommandError(Exception):
    """A mistake in how a command was called; the text is for the user."""


class Outcome:
    """How a command ended."""

    code = 0


@contextlib.contextmanager
def reported(debug: bool = False) -> Iterator[Outcome]:
    """Runs a command; its exceptions become messages and an exit code.

    Args:
        debug: Whether a user's mistake shows its traceback too. The variable HORTUS_DEBUG does the
            same.
    """
    outcome = Outcome()
    debug = debug or os.environ.get("HORTUS_DEBUG", "") not in ("", "0")
    with warnings.catch_warnings():
        _show_config_warnings()
        try:
            try:
                yield outcome
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            # The reader has gone, as `| head` does. Python would complain at exit: no more output.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            outcome.code = BROKEN_PIPE
        except SystemExit as exit_:
            outcome.code = _exit_code(exit_.code)
        except Exception as error:
            message = _message(error)
            if message is None:
                raise
            if debug:
                import traceback

                traceback.print_exc()
            print(f"error: {message}", file=sys.stderr)
            outcome.code = USER_MISTAKE


def _message(error: Exception) -> Optional[str]:
    """What to tell the user; None for a fault of the program."""
    if isinstance(error, tuple(_mistakes())):
        return str(error)
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return f"{error.object!r} is no UTF-8, which TensorFlow cannot open: rename it"
    if type(error) is ValueError and _is_ours(error):
        return str(error)
    if disk.is_full(error) and not isinstance(error, disk.DiskFullError):
        return str(disk.full_error(getattr(error, "filename", None)))
    if isinstance(error, OSError):
        # "[Errno 2] No such file or directory: 'x'" -> "x: No such file or directory"
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return None


def _is_ours(error: Exception) -> bool:
    """Whether a `raise` in hortus made the error, so that its text was written for a user.

    An error that a library raised, or Python itself as in `int("x")`, is a fault of the program.
    """
    place = error.__traceback__
    if place is None:
        return False
    while place.tb_next is not None:
        place = place.tb_next
    code = place.tb_frame.f_code
    is_raise = dis.opname[code.co_code[place.tb_lasti]] == "RAISE_VARARGS"
    package = place.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    return is_raise and package == "hortus"


def _mistakes() -> Iterator[type[Exception]]:
    """The errors whose text is for the user, of those modules that have been imported at all."""
    yield CommandError
    yield hyperparams.ConfigError
    for module, name in _MISTAKES:
        if module in sys.modules:  # otherwise nobody can have raised it
            yield getattr(sys.modules[module], name)


def _exit_code(code: Any) -> int:
    if code is None:
        return 0
    return code if isinstance(code, int) else 1


def _show_config_warnings() -> None:
    """One line per ConfigWarning, each once; other warnings as usual."""
    usual, seen = warnings.showwarning, set()

    def show(message: Any, category: Any, *args: Any, **kwargs: Any) -> None:
        if not issubclass(category, hyperparams.ConfigWarning):
            usual(message, category, *args, **kwargs)
        elif str(message) not in seen:
            seen.add(str(message))
            print(f"warning: {message}", file=sys.stderr)

    warnings.showwarning = show
    warnings.simplefilter("always", hyperparams.ConfigWarning)
