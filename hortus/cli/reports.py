"""`hortus report` and `hortus compare`."""

from collections.abc import Sequence
from typing import Optional

from hortus.cli import output
from hortus.cli.errors import CommandError


def report(model_dir: str, target: Optional[str]) -> None:
    """Writes the page of a run and says where it is."""
    from hortus.core import atomic_file
    from hortus.reports import page, runs

    try:
        run = runs.RecordedRun(model_dir)
    except runs.RunError as error:
        raise CommandError(str(error)) from None
    path = target or run.files.report
    atomic_file.replace(path, _bytes(page.render(run)))
    print(f"Report: {path}")


def compare(model_dirs: Sequence[str], target: Optional[str]) -> None:
    """Prints metrics and config differences of several runs, or writes them as a page."""
    from hortus.core import atomic_file
    from hortus.reports import comparison, runs

    if len(model_dirs) < 2:
        raise CommandError("compare needs two runs or more: hortus compare runs/a runs/b")
    try:
        found = [runs.RecordedRun(folder) for folder in model_dirs]
    except runs.RunError as error:
        raise CommandError(str(error)) from None
    if target:
        atomic_file.replace(target, _bytes(comparison.render(found)))
        print(f"Report: {target}")
        return
    metrics = comparison.metric_rows(found)
    print("Best of each metric in validation, and its step:")
    output.table([("", *comparison.names(found)), *metrics])
    differences = comparison.config_rows(found)
    if differences:
        print("\nWhat differs in the configs:")
        output.table([("", *comparison.names(found)), *differences])
    else:
        print("\nThe configs are alike.")


def _bytes(text: str) -> bytes:
    """The text as UTF-8; what that cannot hold, such as half of a surrogate pair, becomes `?`."""
    return text.encode("utf-8", "replace")
