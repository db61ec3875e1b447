"""`hortus data`: look at a data set, find its faults, convert it, measure how fast it is read."""

import enum
from typing import Annotated, Optional

import typer

from hortus.cli.options import ConfigFiles, Experiment, ParamsOverride, Words

app = typer.Typer(help="Check, show, convert and measure the data of an experiment.")


class Split(str, enum.Enum):
    """Which data of a task."""

    train = "train"
    validation = "validation"


_Split = Annotated[Split, typer.Option("--split", help="Which data of the experiment.")]


@app.command()
def check(
    words: Words = None,
    experiment: Experiment = None,
    config_file: ConfigFiles = None,
    params_override: ParamsOverride = None,
) -> None:
    """Read all images and labels once and tell what is wrong; exit code 1 if something is."""
    from hortus.cli import data_tools

    params = data_tools.parse(experiment, words, config_file, params_override)
    raise typer.Exit(data_tools.check(params))


@app.command()
def show(
    words: Words = None,
    experiment: Experiment = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="PNG file to write.")
    ] = "data.png",
    split: _Split = Split.train,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of pictures.")] = 32,
    config_file: ConfigFiles = None,
    params_override: ParamsOverride = None,
) -> None:
    """Draw examples as the model sees them, augmented and with their labels, on one sheet."""
    from hortus.cli import data_tools

    params = data_tools.parse(experiment, words, config_file, params_override)
    data_tools.show(params, split.value, output, count)


@app.command("make-tfrecord")
def make_tfrecord(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="Folder to write.")
    ],
    words: Words = None,
    experiment: Experiment = None,
    split: Annotated[
        Optional[Split], typer.Option("--split", help="Only this data; without it, all.")
    ] = None,
    shards: Annotated[
        Optional[int],
        typer.Option("--shards", min=1, help="Number of files; one per 1000 images by default."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace records that an earlier call has written.")
    ] = False,
    config_file: ConfigFiles = None,
    params_override: ParamsOverride = None,
) -> None:
    """Convert data to TFRecord files: training data shuffled, other data in order."""
    from hortus.cli import data_tools

    params = data_tools.parse(experiment, words, config_file, params_override)
    data_tools.make_tfrecord(params, split and split.value, output, shards, force)


@app.command()
def bench(
    words: Words = None,
    experiment: Experiment = None,
    split: _Split = Split.train,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, help="How long to measure.")
    ] = 10.0,
    config_file: ConfigFiles = None,
    params_override: ParamsOverride = None,
) -> None:
    """Measure how many examples per second are read and prepared, without any training."""
    from hortus.cli import data_tools

    params = data_tools.parse(experiment, words, config_file, params_override)
    data_tools.bench(params, split.value, seconds)
