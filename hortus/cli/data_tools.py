"""What the commands of `hortus data` print."""

import os
import sys
from collections.abc import Sequence
from typing import Optional

from hortus.cli.errors import CommandError
from hortus.cli.options import split_named
from hortus.cli.progress_bar import ProgressBar
from hortus.core import config_definitions as cfg

FAULTS_FOUND = 1
_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def parse(
    experiment: Optional[str],
    words: Optional[Sequence[str]],
    config_files: Optional[Sequence[str]],
    overrides: Optional[Sequence[str]],
) -> cfg.ExperimentConfig:
    """The config; the first of `words` is the experiment where none is named otherwise."""
    from hortus.core import exp_parser

    name, assignments = split_named(experiment, words)
    return exp_parser.parse_config(
        exp_parser.ParseConfigOptions(
            experiment=name,
            config_file=config_files or [],
            params_override=[*(overrides or []), *assignments],
        )
    )


def check(params: cfg.ExperimentConfig) -> int:
    """Prints all findings as they come and a last line; returns the exit code."""
    from hortus.vision.data import checks, progress

    counts = dict.fromkeys(checks.LEVELS, 0)
    with ProgressBar() as bar, progress.reported_to(bar):
        for finding in checks.check(params.task):
            counts[finding.level] += 1
            bar.clear()
            _print_finding(finding.level, str(finding))
    shown = [
        f"{count} {level}{'s' if count > 1 else ''}"
        for level, count in counts.items()
        if count and level != "note"
    ]
    print(f"Found {' and '.join(shown) or 'nothing wrong'}.")
    return FAULTS_FOUND if counts["error"] else 0


def show(params: cfg.ExperimentConfig, split: str, output: str, count: int) -> None:
    """Writes a contact sheet."""
    from hortus.vision.data import conversion, pictures

    if not output.lower().endswith(".png"):
        raise CommandError(f"--output {output}: a PNG file is written, so its name ends with .png")
    field = f"task.{conversion.SPLITS[split]}"
    drawn = pictures.pictures(conversion.data_of(params.task, split), params.task, count)
    if not drawn:
        raise CommandError(f"{field} has no examples to show")
    pictures.write_sheet(drawn, output)
    print(f"{len(drawn)} examples of {field}: {output}")


def make_tfrecord(
    params: cfg.ExperimentConfig,
    split: Optional[str],
    output: str,
    num_shards: Optional[int],
    force: bool,
) -> None:
    """Writes records, and prints how to read them."""
    from hortus.vision.data import conversion, progress

    with ProgressBar() as bar, progress.reported_to(bar):
        counts = conversion.convert(
            params.task, output, [split] if split else (), num_shards, force
        )
    for name, written in counts.items():
        pattern = os.path.join(os.path.abspath(output), f"{name}-*.tfrecord")
        key = f"task.{conversion.SPLITS[name]}"
        files = "1 file" if len(written) == 1 else f"{len(written)} files"
        print(f"{sum(written.values())} examples in {files}. To read them:")
        print(f"  {key}.input_path='{pattern}' {key}.file_type=tfrecord")


def bench(params: cfg.ExperimentConfig, split: str, seconds: float) -> None:
    """Prints how long the first batch takes, and how fast the next ones come."""
    from hortus import engine

    engine.select(None)
    from hortus.core import task_factory
    from hortus.vision import registry_imports
    from hortus.vision.data import conversion, speed

    data = conversion.data_of(params.task, split)
    registry_imports.load_tasks()
    print(speed.measure(task_factory.get_task(params.task), data, seconds))


def _print_finding(level: str, text: str) -> None:
    if not sys.stdout.isatty():
        print(text, flush=True)
        return
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)
    styled.stylize(_COLOURS[level], 0, len(level))
    Console().print(styled, soft_wrap=True)
