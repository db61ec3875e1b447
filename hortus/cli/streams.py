"""Standard streams that can be written to, whatever the shell made of them."""

import contextlib
import io
import os
import sys


def ensure() -> None:
    """Opens standard streams that are closed, and lets the others show every text.

    A closed one (`hortus train >&-`, or a service that starts without any) would be a fault at the
    first word. Worse, the next file that is opened would take its number, and libraries that write
    to number 2 would write into a checkpoint.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # File names need not be UTF-8, and not every terminal shows every character.
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors="backslashreplace")


def is_terminal() -> bool:
    """Whether a person reads what is printed."""
    return sys.stdout is not None and sys.stdout.isatty()
