"""Contestants that take turns, each in a process of its own, and the table of their medians.

A benchmark runs itself with `--job JOB`, a dict as JSON, for each contestant, and prints `{name:
number}` there. On a busy machine turns treat all contestants alike, so that ratios are fair where
absolute numbers are not.
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Optional

Job = dict[str, Any]
Numbers = dict[str, float]

PEERS: dict[str, dict[str, str]] = {
    "tf-models-official": {},
    "tf-models-official, oneDNN on": {"TF_ENABLE_ONEDNN_OPTS": "1"},
}
"""The environments of the peer: as its users get it, and with the kernels that hortus switches on.

TensorFlow itself leaves them off on CPUs without AVX-512.
"""


@dataclasses.dataclass
class Contestant:
    """One row of a table: what it adds to the job, and where it runs."""

    job: Job
    python: str = sys.executable
    environment: dict[str, str] = dataclasses.field(default_factory=dict)


def parser(description: Optional[str]) -> argparse.ArgumentParser:
    """The options that benchmarks have in common."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    made.add_argument("--peer", help="interpreter that has tf-models-official")
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    return made


def ours(jax: bool) -> dict[str, Contestant]:
    """Hortus on TensorFlow, and on JAX if wanted."""
    engines = {"hortus": "tensorflow", **({"hortus on JAX": "jax"} if jax else {})}
    return {
        name: Contestant({"who": "hortus"}, environment={"KERAS_BACKEND": engine})
        for name, engine in engines.items()
    }


def peers(python: Optional[str]) -> dict[str, Contestant]:
    """tf-models-official in its environments; none without an interpreter that has it."""
    if not python:
        return {}
    return {
        name: Contestant({"who": "peer"}, python, environment)
        for name, environment in PEERS.items()
    }


def play(
    script: str, contestants: Mapping[str, Contestant], job: Job, rounds: int
) -> dict[str, Numbers]:
    """The medians of each contestant's numbers, after some rounds of turns."""
    results: dict[str, list[Numbers]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            numbers = run(
                script, {**job, **contestant.job}, contestant.python, **contestant.environment
            )
            results[name].append(numbers)
    return {name: medians(numbers) for name, numbers in results.items()}


def run(script: str, job: Job, python: str = sys.executable, **environment: str) -> Any:
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
