"""The `hortus` command: its options, and the one place where a user's mistake becomes a message.

Commands import what they need when they run, so that help, listing and config commands start at
once and load no numerical library.
"""

import enum
import sys
from collections.abc import Callable
from typing import Annotated, Any, Optional, TypeVar

import typer

import hortus
from hortus.cli import catalog, commands, data, streams, weights
from hortus.cli.options import (
    Assignments,
    Checkpoint,
    ConfigFiles,
    Experiment,
    ModelDir,
    ParamsOverride,
    SameTask,
    Words,
    split,
    split_named,
)
from hortus.core import modes

_Function = TypeVar("_Function", bound=Callable[..., Any])

app = typer.Typer(
    name="hortus",
    help="Train, evaluate and ship vision models with Keras 3.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Rich help costs time and draws boxes: for a person at a terminal only.
    rich_markup_mode="rich" if streams.is_terminal() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _command(name: str) -> Callable[[_Function], _Function]:
    """Decorates a command of our own: registers it, and adds it to the app."""

    def decorator(function: _Function) -> _Function:
        return app.command(name)(commands.register_command(name)(function))

    return decorator


app.add_typer(commands.register_command("data")(data.app), name="data")
app.add_typer(commands.register_command("weights")(weights.app), name="weights")


class Format(str, enum.Enum):
    """How `hortus describe` writes a config."""

    yaml = "yaml"
    json = "json"
    tree = "tree"


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"hortus {hortus.__version__}")
        raise typer.Exit()


@app.callback()
def _globals(
    import_modules: Annotated[
        Optional[list[str]],
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module of yours first, so that its experiments are known; repeat it for "
            "several. HORTUS_IMPORT=a,b does the same.",
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback with errors; so does HORTUS_DEBUG=1.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    from hortus.cli import registrations

    registrations.load(import_modules or ())


@_command("list")
def list_(
    kind: Annotated[
        str, typer.Argument(help=f"What to list: {', '.join(catalog.KINDS)}.")
    ] = "experiments",
    pattern: Annotated[
        Optional[str], typer.Argument(help="Only names like this: '*imagenet*'.")
    ] = None,
) -> None:
    """List what can be named: experiments, backbones, optimizers, export formats, ..."""
    from hortus.cli import output

    if kind not in catalog.KINDS:
        known = ", ".join(catalog.KINDS)
        raise typer.BadParameter(f"{kind!r} cannot be listed; expected one of {known}")
    rows = catalog.rows(kind, pattern)
    if not rows:
        print(f"no {kind} yet: yours are known with --import MODULE", file=sys.stderr)
    output.table(rows)


@_command("describe")
def describe(
    words: Words = None,
    experiment: Experiment = None,
    config_file: ConfigFiles = None,
    params_override: ParamsOverride = None,
    origins: Annotated[
        bool, typer.Option("--origins", help="Say where each value comes from.")
    ] = False,
    diff: Annotated[
        bool,
        typer.Option(
            "--diff",
            help="Only what files and overrides change; without any, only what the experiment "
            "changes of the defaults.",
        ),
    ] = False,
    output_format: Annotated[
        Format, typer.Option("--format", help="yaml and json load again; tree explains each field.")
    ] = Format.yaml,
) -> None:
    """Show an experiment's config, as it is after files and overrides."""
    from hortus.cli import describe as describe_lib

    name, assignments = split_named(experiment, words)
    describe_lib.show(
        name,
        config_file or [],
        [*(params_override or []), *assignments],
        origins=origins,
        diff=diff,
        form=output_format.value,
    )


@_command("schema")
def schema(
    name: Annotated[
        Optional[str], typer.Argument(help="Name of the experiment.", metavar="EXPERIMENT")
    ] = None,
    experiment: Experiment = None,
) -> None:
    """Print a JSON schema that lets an editor complete and check the experiment's YAML files."""
    from hortus.cli import describe as describe_lib

    describe_lib.schema(split_named(experiment, [name] if name else [])[0])


@_command("validate")
def validate(
    words: Words = None,
    experiment: Experiment = None,
    config_file: ConfigFiles = None,
    params_override: ParamsOverride = None,
) -> None:
    """Check files and overrides against an experiment; exit code 2 when something is wrong."""
    from hortus.cli import describe as describe_lib

    name, assignments = split_named(experiment, words)
    describe_lib.validate(name, config_file or [], [*(params_override or []), *assignments])


@_command("train")
def train(
    model_dir: ModelDir,
    words: Words = None,
    experiment: Experiment = None,
    mode: Annotated[
        modes.TrainMode,
        typer.Option("--mode", help=f"What to do: {modes.describe(modes.TrainMode)}"),
    ] = modes.TrainMode.train_and_eval,
    config_file: ConfigFiles = None,
    params_override: ParamsOverride = None,
    enable_async_checkpointing: Annotated[
        bool,
        typer.Option(
            "--enable_async_checkpointing/--noenable_async_checkpointing",
            help="Write checkpoints while training goes on.",
        ),
    ] = True,
) -> None:
    """Train an experiment; the same command again goes on where it stopped."""
    from hortus.cli import run

    name, assignments = split_named(experiment, words)
    run.run(
        name,
        mode.value,
        model_dir,
        config_file or [],
        [*(params_override or []), *assignments],
        enable_async_checkpointing,
    )


@_command("eval")
def evaluate(
    words: Words = None,
    experiment: Annotated[
        Optional[str],
        typer.Option(
            "--experiment", "-e", help="Name of the experiment; by default the run's own config."
        ),
    ] = None,
    model_dir: Annotated[
        Optional[str],
        typer.Option(
            "--model_dir",
            "--model-dir",
            "-d",
            metavar="FOLDER",
            help="Folder of the run: checkpoints, summaries, params.yaml.",
        ),
    ] = None,
    export_path: Annotated[
        Optional[str],
        typer.Option(
            "--export",
            metavar="PATH",
            help="Evaluate this export instead of a run; its config travels with it.",
        ),
    ] = None,
    mode: Annotated[
        modes.EvalMode,
        typer.Option("--mode", help=f"What to do: {modes.describe(modes.EvalMode)}"),
    ] = modes.EvalMode.eval,
    config_file: ConfigFiles = None,
    params_override: ParamsOverride = None,
) -> None:
    """Evaluate the newest checkpoint of a run, or an export."""
    experiment, assignments = split(experiment, words)
    overrides = [*(params_override or []), *assignments]
    if export_path is not None:
        from hortus.cli import export as export_lib

        export_lib.evaluate(export_path, config_file or [], overrides)
        return
    from hortus.cli import run
    from hortus.cli.errors import CommandError

    if model_dir is None:
        raise CommandError("Missing option '--model_dir', or --export for an exported model")
    run.run(experiment, mode.value, model_dir, config_file or [], overrides)


@_command("report")
def report(
    model_dir: Annotated[str, typer.Argument(help="Folder of the run.", metavar="MODEL_DIR")],
    target: Annotated[
        Optional[str],
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write; MODEL_DIR/report.html if unset."
        ),
    ] = None,
) -> None:
    """Write one HTML page about a run: metrics, curves, pictures, config, machine."""
    from hortus.cli import reports

    reports.report(model_dir, target)


@_command("compare")
def compare(
    model_dirs: Annotated[list[str], typer.Argument(help="Folders of runs.", metavar="MODEL_DIR")],
    target: Annotated[
        Optional[str],
        typer.Option("--output", "-o", metavar="FILE", help="Write an HTML page with curves."),
    ] = None,
) -> None:
    """Put runs side by side: their best metrics, and what differs in their configs."""
    from hortus.cli import reports

    reports.compare(model_dirs, target)


@_command("doctor")
def doctor() -> None:
    """Tell what is installed, which engines and devices work, and what to install for the rest."""
    from hortus.cli import doctor as doctor_lib

    raise typer.Exit(doctor_lib.run())


@_command("export")
def export(
    model_dir: Annotated[str, typer.Argument(metavar="MODEL_DIR", help="Folder of a run.")],
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="PATH", help="File, or folder of a SavedModel."),
    ],
    form: Annotated[
        str,
        typer.Option("--format", "-f", metavar="NAME", help="Format; see `hortus list formats`."),
    ] = "saved_model",
    checkpoint: Checkpoint = "best",
    experiment: SameTask = None,
    images: Annotated[
        Optional[list[str]],
        typer.Option(
            "--images",
            metavar="PATH",
            help="Image, folder or pattern to compare export and model on; repeat it for more. By "
            "default the validation data.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    params_override: ParamsOverride = None,
    assignments: Assignments = None,
) -> None:
    """Write a model for other runtimes, and check that it says the same there.

    What it returns is a matter of task.export_config, which can be given here:
    task.export_config.rescale_output=true
    """
    from hortus.cli import export as export_lib

    export_lib.export(
        model_dir,
        form,
        output,
        checkpoint=checkpoint,
        experiment=experiment,
        images=images or (),
        force=force,
        overrides=[*(params_override or ()), *(assignments or ())],
    )


@_command("predict")
def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL_DIR|EXPORT", help="Folder of a run, or an export of it.")
    ],
    images: Annotated[
        list[str],
        typer.Argument(metavar="IMAGES...", help="Image files, folders, or patterns in quotes."),
    ],
    output: Annotated[
        Optional[str],
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Where results are written; by default MODEL_DIR/predictions, or "
            "EXPORT_predictions beside an export.",
        ),
    ] = None,
    checkpoint: Checkpoint = "best",
    experiment: SameTask = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Images that the model sees at once.")
    ] = 8,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Draw predictions on the images.")
    ] = True,
    upright: Annotated[
        bool,
        typer.Option(
            "--upright/--as-stored",
            help="Turn photos as their EXIF data says, or take pixels as they are stored, as "
            "training and evaluation do.",
        ),
    ] = True,
    max_pixels: Annotated[
        int, typer.Option("--max-pixels", min=1, help="Skip larger images.")
    ] = 200_000_000,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the results that the folder has already.")
    ] = False,
) -> None:
    """Say what a model sees in images; exit code 1 if some of them could not be read."""
    from hortus.cli import predict as predict_lib

    code = predict_lib.predict(
        model,
        images,
        output,
        checkpoint=checkpoint,
        experiment=experiment,
        batch_size=batch_size,
        pictures=pictures,
        upright=upright,
        max_pixels=max_pixels,
        resume=resume,
    )
    raise typer.Exit(code)


def main(arguments: Optional[list[str]] = None) -> int:
    """Runs the command line; returns the exit code: 0 for done, 2 for a mistake of the user."""
    from hortus.cli import errors

    streams.ensure()
    arguments = _globals_first(sys.argv[1:] if arguments is None else arguments)
    with errors.reported(debug="--debug" in arguments) as outcome:
        _add_users_commands(arguments)
        app(arguments, prog_name="hortus")
    return outcome.code


def _add_users_commands(arguments: list[str]) -> None:
    """Imports the user's modules before the command is looked for, unless it is one of ours."""
    modules, rest = _split_globals(arguments)
    if rest and rest[0] in commands.COMMANDS:
        return
    from hortus.cli import registrations

    if modules or registrations.named_by_environment():
        registrations.load(modules)
    known = {command.name for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    for name, command in commands.COMMANDS.items():
        if name in known:
            continue
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)


def _globals_first(arguments: list[str]) -> list[str]:
    """Lets the global options stand anywhere: `hortus describe flowers --import my_project`."""
    front, rest = [], []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            rest += [argument, *remaining]
        elif argument == "--debug" or argument.startswith("--import="):
            front.append(argument)
        elif argument == "--import":
            front += [argument, *[value for value in [next(remaining, None)] if value is not None]]
        else:
            rest.append(argument)
    return front + rest


def _split_globals(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The modules to import, and the rest, of arguments whose global options stand first."""
    modules, remaining = [], list(arguments)
    while remaining and (remaining[0] == "--debug" or remaining[0].startswith("--import")):
        option, _, value = remaining.pop(0).partition("=")
        if option == "--import" and not value and remaining:
            value = remaining.pop(0)
        modules += [value] if value else []
    return modules, remaining


if __name__ == "__main__":
    sys.exit(main())
