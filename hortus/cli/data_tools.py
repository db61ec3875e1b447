"""What the commands of `hortus data` do."""

import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Optional

from hortus.cli.errors import CommandError
from hortus.cli.progress_bar import ProgressBar
from hortus.core import config_definitions as cfg

FAULTS_FOUND = 1
_SPLITS = {"train": "train_data", "validation": "validation_data"}
_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def parse(
    experiment: Optional[str],
    words: Optional[Sequence[str]],
    config_files: Optional[Sequence[str]],
    overrides: Optional[Sequence[str]],
) -> cfg.ExperimentConfig:
    """The config; the first of `words` is the experiment where none is named otherwise.

    Raises:
        CommandError: no experiment is named.
    """
    from hortus.core import exp_parser

    words = list(words or ())
    if experiment is None and words and "=" not in words[0]:
        experiment = words.pop(0)
    if experiment is None:
        raise CommandError("which experiment? Name it first, or with --experiment; see hortus list")
    return exp_parser.parse_config(
        exp_parser.ParseConfigOptions(
            experiment=experiment,
            config_file=config_files or [],
            params_override=[*(overrides or []), *words],
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
    from hortus.vision.data import pictures

    if not output.lower().endswith(".png"):
        raise CommandError(f"--output {output}: a PNG file is written, so its name ends with .png")
    data = _data(params, split)
    drawn = pictures.pictures(data, params.task, count)
    if not drawn:
        raise CommandError(f"task.{_SPLITS[split]} has no examples to show")
    pictures.write_sheet(drawn, output)
    print(f"{len(drawn)} examples of task.{_SPLITS[split]}: {output}")


def make_tfrecord(
    params: cfg.ExperimentConfig,
    split: Optional[str],
    output: str,
    num_shards: Optional[int],
    force: bool,
) -> None:
    """Writes the records of one split, or of all that name data, to a new folder.

    The folder appears when it is complete. One that is there stays as it is unless `force` is
    given and it holds nothing but records of an earlier call.
    """
    from hortus.core.checkpoints import atomic_folder
    from hortus.vision.data import progress, records, shards
    from hortus.vision.data.raw_images import is_set
    from hortus.vision.dataloaders import dataset_info

    chosen = [split] if split else [s for s in _SPLITS if is_set(params.task.get(_SPLITS[s]))]
    if not chosen:
        raise CommandError("no data is named: set task.train_data.input_path")
    output = os.path.abspath(output)
    _check_replaceable(output, force)
    # Before anything is written: all of these may fail for want of data.
    infos = {name: records.info(_data(params, name), params.task) for name in chosen}
    folder = atomic_folder.begin(output)
    try:
        counts: dict[str, dict[str, int]] = {}
        with ProgressBar() as bar, progress.reported_to(bar):
            for name in chosen:
                data = _data(params, name)
                count = num_shards or shards.number_of_shards(infos[name].num_examples)
                examples = records.examples(data, params.task)
                if data.is_training:
                    written = shards.write_shuffled(examples, folder, name, count)
                else:
                    per_shard = -(-(infos[name].num_examples or 1000 * count) // count)
                    written = shards.write_in_order(examples, folder, name, per_shard)
                if not written:
                    raise CommandError(f"task.{_SPLITS[name]} has no examples to convert")
                counts[name] = written
        names = next((info.class_names for info in infos.values() if info.class_names), ())
        per_file = {file: count for part in counts.values() for file, count in part.items()}
        dataset_info.write_info(folder, names, per_file)
        atomic_folder.commit(folder, output)
    finally:
        atomic_folder.discard(folder)
    for name, written in counts.items():
        pattern = os.path.join(output, f"{name}-*.tfrecord")
        key = f"task.{_SPLITS[name]}"
        files = "1 file" if len(written) == 1 else f"{len(written)} files"
        print(f"{sum(written.values())} examples in {files}. To read them:")
        print(f"  {key}.input_path='{pattern}' {key}.file_type=tfrecord")


def _check_replaceable(output: str, force: bool) -> None:
    """Raises unless nothing, or an earlier result that may be replaced, is at `output`."""
    from hortus.vision.dataloaders import dataset_info

    if not os.path.lexists(output):
        return
    if not os.path.isdir(output):
        raise CommandError(f"--output {output}: is a file, where a new folder is to be made")
    found = set(os.listdir(output))
    if not found:
        return
    if not force:
        raise CommandError(
            f"--output {output}: is there already; choose another folder, or replace its content "
            "with --force"
        )
    own = {*dataset_info.record_files(output), dataset_info.FILE_NAME}
    if not found <= own:
        others = sorted(found - own)
        shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        raise CommandError(
            f"--output {output}: holds other files than records of `hortus data make-tfrecord`, "
            f"which --force would delete: {shown}"
        )


def bench(params: cfg.ExperimentConfig, split: str, seconds: float) -> None:
    """Prints how long the first batch takes, and how fast the next ones come."""
    from hortus import engine

    engine.select(None)
    from hortus.core import task_factory
    from hortus.vision import registry_imports

    data = _data(params, split)
    registry_imports.load_tasks()
    task = task_factory.get_task(params.task)
    begin = time.perf_counter()
    batches = iter(task.build_inputs(data))
    size = data.global_batch_size
    try:
        next(batches)
        first = time.perf_counter() - begin
        begin, cpu, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - begin < seconds:
            try:
                next(batches)
            except StopIteration:  # data that is read once, and is less than asked for
                break
            count += 1
        elapsed, cpu = time.perf_counter() - begin, time.process_time() - cpu
    except StopIteration:
        raise CommandError(f"task.{_SPLITS[split]} has less than one batch of {size}") from None
    except Exception as error:
        better = task.input_error(error)
        if better is None:
            raise
        raise better from error
    print(f"first batch of {size} after {first:.1f} s")
    if not count:
        print("that is all of the data; no rate can be told")
        return
    print(
        f"{count * size / elapsed:.1f} examples/s ({count} batches in {elapsed:.1f} s), "
        f"{1000 * cpu / (count * size):.2f} ms of CPU time per example on {os.cpu_count()} CPUs"
    )


def _data(params: cfg.ExperimentConfig, split: str) -> Any:
    from hortus.vision.data.raw_images import is_set

    data = params.task.get(_SPLITS[split])
    if not is_set(data):
        raise CommandError(f"task.{_SPLITS[split]} names no data: set its input_path")
    return data


def _print_finding(level: str, text: str) -> None:
    if not sys.stdout.isatty():
        print(text, flush=True)
        return
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)
    styled.stylize(_COLOURS[level], 0, len(level))
    Console().print(styled, soft_wrap=True)
