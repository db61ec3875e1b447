"""Options that several commands have."""

from typing import Annotated, Optional

import typer

Experiment = Annotated[
    str, typer.Option("--experiment", "-e", help="Name of the experiment; see `hortus list`.")
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
