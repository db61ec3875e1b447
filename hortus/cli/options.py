"""Options that several commands have."""

from collections.abc import Sequence
from typing import Annotated, Optional

import typer

Experiment = Annotated[
    Optional[str],
    typer.Option("--experiment", "-e", help="Name of the experiment; see `hortus list`."),
]
Words = Annotated[
    Optional[list[str]],
    typer.Argument(
        metavar="EXPERIMENT [KEY=VALUE]...",
        help="The experiment, where --experiment does not name it, and overrides that win over all "
        "others.",
    ),
]
ModelDir = Annotated[
    str,
    typer.Option(
        "--model_dir",
        "--model-dir",
        "-d",
        metavar="FOLDER",
        help="Folder of the run: checkpoints, summaries, params.yaml.",
    ),
]
Assignments = Annotated[
    Optional[list[str]],
    typer.Argument(metavar="[KEY=VALUE]...", help="More overrides, which win over all others."),
]
ConfigFiles = Annotated[
    Optional[list[str]],
    typer.Option(
        "--config_file",
        "--config-file",
        metavar="FILE",
        help="YAML or JSON file that overrides the experiment. Repeat it for more; later ones win.",
    ),
]
ParamsOverride = Annotated[
    Optional[list[str]],
    typer.Option(
        "--params_override",
        "--params-override",
        metavar="TEXT",
        help="Overrides that win over all files: a.b=1,c.d=[2,3], or YAML or JSON text.",
    ),
]
Checkpoint = Annotated[
    str,
    typer.Option(
        "--checkpoint",
        metavar="NAME",
        help="Weights of a run: best (the newest where none is kept as best), latest, or a path.",
    ),
]
SameTask = Annotated[
    Optional[str],
    typer.Option(
        "--experiment",
        "-e",
        help="An experiment of the same task, where params.yaml alone does not tell which it is.",
    ),
]


def split(
    experiment: Optional[str], words: Optional[Sequence[str]]
) -> tuple[Optional[str], list[str]]:
    """The experiment, by option or as the first of `words`, and the overrides among the words."""
    words = list(words or ())
    if words and "=" not in words[0]:
        if experiment is not None:
            raise typer.BadParameter(f"two experiments: {experiment} and {words[0]}")
        experiment = words.pop(0)
    wrong = [word for word in words if "=" not in word]
    if wrong:
        raise typer.BadParameter(f"{wrong[0]!r} is no override: expected KEY=VALUE")
    return experiment, words


def split_named(experiment: Optional[str], words: Optional[Sequence[str]]) -> tuple[str, list[str]]:
    """As `split`, for commands that need an experiment."""
    experiment, overrides = split(experiment, words)
    if experiment is None:
        raise typer.BadParameter("which experiment? Name it first, or with -e; see hortus list")
    return experiment, overrides
