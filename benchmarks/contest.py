"""Contestants that take turns, each in a process of its own, and the table of their medians.

A benchmark defines `measure(job) -> {name: number}` and calls `main(measure, ...)`; a job is a dict
that JSON can hold. On a busy machine turns treat all contestants alike, so that ratios are fair
where absolute numbers are not.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Optional

Job = dict[str, Any]
Numbers = dict[str, float]


def run(script: str, job: Job, python: str = sys.executable, **environment: str) -> Numbers:
    """What `script --job JOB` prints as its last line, in a process of its own."""
    result = subprocess.run(
        [python, script, "--job", json.dumps(job)],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        check=False,
    )
    if result.returncode:
        sys.exit(f"{job} failed:\n{result.stderr[-3000:]}")
    return json.loads(result.stdout.splitlines()[-1])


def medians(rounds: list[Numbers]) -> Numbers:
    """The median of each number over the rounds."""
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def show(
    title: str,
    rows: Mapping[str, Numbers],
    base: Optional[str] = None,
    units: Optional[Mapping[str, tuple[str, float]]] = None,
) -> None:
    """Prints rows of numbers, and how many times those of `base` each is.

    Args:
        title: over the table.
        rows: numbers by contestant; all have the same.
        base: the contestant that ratios refer to; None for no ratios.
        units: of a number: the heading and the factor that it is shown with.
    """
    from rich import console, table

    shown = table.Table(title=title)
    shown.add_column("")
    names = list(next(iter(rows.values())))
    for name in names:
        heading, _ = (units or {}).get(name, (name, 1.0))
        shown.add_column(heading, justify="right")
        if base is not None:
            shown.add_column("ratio", justify="right")
    for contestant, numbers in rows.items():
        cells = []
        for name in names:
            _, factor = (units or {}).get(name, (name, 1.0))
            cells.append(f"{numbers[name] * factor:,.3g}")
            if base is not None:
                cells.append(f"{numbers[name] / rows[base][name]:.2f}")
        shown.add_row(contestant, *cells)
    console.Console(width=120).print(shown)
