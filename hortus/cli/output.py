"""Printing: columns and colour for a person at a terminal, plain stable text for a pipe."""

import re
import sys
import typing
from collections.abc import Sequence

if typing.TYPE_CHECKING:
    import rich.console

_YAML_LINE = re.compile(r"^(?P<key>\s*(?:- )?[\w.\[\]]+:)?(?P<value>.*?)(?P<note>(?:^|  )# .*)?$")


def is_terminal() -> bool:
    """Whether standard output is read by a person."""
    return sys.stdout.isatty()


def table(rows: Sequence[tuple[str, ...]]) -> None:
    """Prints rows in columns; the first column is the name."""
    if is_terminal():
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        for row in rows:
            grid.add_row(Text(row[0], style="bold cyan", no_wrap=True), *map(Text, row[1:]))
        _console().print(grid)
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def yaml(text: str) -> None:
    """Prints YAML text; a terminal gets colours."""
    if not is_terminal():
        print(text, end="" if text.endswith("\n") else "\n")
        return
    from rich.text import Text

    styled = Text()
    for line in text.splitlines():
        parts = _YAML_LINE.match(line)
        if parts is not None:
            styled.append(parts["key"] or "", style="cyan")
            styled.append(parts["value"] or "")
            styled.append(parts["note"] or "", style="dim")
        styled.append("\n")
    _console().print(styled, end="", soft_wrap=True)


def json(text: str) -> None:
    """Prints JSON text; a terminal gets colours."""
    if not is_terminal():
        print(text)
        return
    from rich.highlighter import JSONHighlighter

    _console().print(JSONHighlighter()(text), soft_wrap=True)


def tree(lines: Sequence[tuple[str, str, str, str]]) -> None:
    """Prints the lines of a tree: guide, name, value and note of each.

    A terminal gets colours, and a note that is cut at the edge of the screen.
    """
    if not is_terminal():
        encoding = sys.stdout.encoding or "ascii"
        for line in lines:
            print(_line(*line).encode(encoding, "replace").decode(encoding))
        return
    from rich.text import Text

    console = _console()
    for guide, name, value, note in lines:
        text = Text(guide, style="dim")
        text.append(name, style="cyan")
        text.append(f": {value}" if value else "", style="default")
        text.append(f"  {note}" if note else "", style="dim")
        console.print(text, no_wrap=True, overflow="ellipsis", crop=True)


def _line(guide: str, name: str, value: str, note: str) -> str:
    text = guide + name
    if value:
        text += f": {value}"
    return f"{text}  {note}" if note else text


def _console() -> "rich.console.Console":
    from rich.console import Console

    return Console(highlight=False)
