"""What was loaded into a model, what was not, and why."""

import collections
import dataclasses
import sys
from typing import Any

Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Row:
    """One variable. A shape is None where there is no such variable.

    Attributes:
        name: its name in the model, or in the file if the model has none.
        shape: its shape in the model.
        file_shape: its shape in the file.
        source: its name in the file.
        by_order: whether it was found by order and shape, not by its name.
    """

    name: str
    shape: Any = None
    file_shape: Any = None
    source: str = ""
    by_order: bool = False


@dataclasses.dataclass
class LoadReport:
    """What `load_modules` did.

    Attributes:
        path: where the values came from.
        modules: the modules that were asked for.
        origin: what the file is, where another program wrote it.
        loaded: variables that were set.
        skipped: variables of the same name whose shape differs.
        missing: variables of the model that the file lacks.
        unused: variables of the file, in the same modules, that the model lacks.
        notes: how the model differs from the one that the weights were trained in.
    """

    path: str
    modules: list[str]
    origin: str = ""
    loaded: list[Row] = dataclasses.field(default_factory=list)
    skipped: list[Row] = dataclasses.field(default_factory=list)
    missing: list[Row] = dataclasses.field(default_factory=list)
    unused: list[Row] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)

    def summary(self) -> str:
        """One line."""
        order = sum(row.by_order for row in self.loaded)
        note = f" ({order} of them by order and shape)" if order else ""
        kind = f" ({self.origin})" if self.origin else ""
        return (
            f"{', '.join(self.modules)} from {self.path}{kind}: {len(self.loaded)} loaded{note}, "
            f"{len(self.skipped)} skipped for their shape, {len(self.missing)} missing, "
            f"{len(self.unused)} unused"
        )

    def rows(self, every: bool = False) -> list[tuple[str, str, str, str]]:
        """The table: what happened, variable, shape in the model, shape in the file.

        Args:
            every: whether each loaded variable has a row; otherwise each group of them has one.
        """
        table = []
        if every:
            for row in self.loaded:
                how = "loaded by order" if row.by_order else "loaded"
                table.append((how, row.name, _text(row.shape), _text(row.file_shape)))
        else:
            groups = collections.Counter(_group(row.name) for row in self.loaded)
            for group, count in groups.items():
                noun = "variable" if count == 1 else "variables"
                table.append(("loaded", f"{group} ({count} {noun})", "", ""))
        for what, rows in (
            ("skipped, other shape", self.skipped),
            ("missing in the file", self.missing),
            ("unused in the file", self.unused),
        ):
            table += [(what, row.name, _text(row.shape), _text(row.file_shape)) for row in rows]
        return table

    def plain_table(self, every: bool = False) -> str:
        """The table as text, for a log."""
        rows = [("", "variable", "model", "file"), *self.rows(every)]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([self.summary(), *lines])

    def rich_table(self, every: bool = False) -> Any:
        """The table for a terminal, a `rich.table.Table`."""
        # Only who prints needs rich.
        from rich import table

        colours = {"loaded": "green", "skipped": "yellow", "missing": "red", "unused": "dim"}
        result = table.Table(title=self.summary(), title_justify="left")
        for column in ("", "variable", "model", "file"):
            result.add_column(column, overflow="fold")
        for row in self.rows(every):
            result.add_row(*row, style=colours[row[0].split(",")[0].split(" ")[0]])
        return result

    def show(self) -> None:
        """Prints the table: in colour on a terminal, as text otherwise."""
        if sys.stderr.isatty():
            from rich.console import Console

            Console(stderr=True).print(self.rich_table())
        else:
            print(self, file=sys.stderr, flush=True)

    def __str__(self) -> str:
        return self.plain_table()


def _group(name: str) -> str:
    """The first two parts: `backbone/stem`."""
    parts = name.split("/")
    return "/".join(parts[: min(2, max(len(parts) - 1, 1))])


def _text(shape: Any) -> str:
    return "" if shape is None else str(tuple(shape))
