"""`hortus export`, and `hortus eval --export`."""

import sys
from collections.abc import Sequence
from typing import Optional


def export(
    model_dir: str,
    form: str,
    output: str,
    *,
    checkpoint: str = "best",
    experiment: Optional[str] = None,
    images: Sequence[str] = (),
    force: bool = False,
    overrides: Sequence[str] = (),
) -> None:
    """Writes an export and prints how far it is from the model."""
    from hortus import engine

    engine.load()
    from hortus.vision.serving import exporting
    from hortus.vision.serving.services.differences import LIMIT

    done = exporting.export_run(
        model_dir,
        form,
        output,
        checkpoint,
        experiment=experiment,
        images=images,
        force=force,
        overrides=overrides,
    )
    print(f"Exported {done.checkpoint} to {done.path}")
    print(f"{str(done.parity)[0].upper()}{str(done.parity)[1:]} (limit {LIMIT})")


def evaluate(path: str, config_files: Sequence[str], overrides: Sequence[str]) -> None:
    """Prints the metrics of an export on the validation data of its config."""
    from hortus import engine, hyperparams

    engine.load()
    from hortus.vision.serving.description import read_description
    from hortus.vision.serving.run import settle_engine

    description = read_description(path)
    params = description.params()
    for file in config_files:
        params.override(hyperparams.load_overrides(file))
    for text in overrides:
        params.override(hyperparams.parse_overrides(text, "--params_override"))
    params.validate()
    settle_engine()
    from hortus.vision.serving.exported import evaluate_export

    print(f"Evaluating {path} ({description.format})", file=sys.stderr)
    for name, value in sorted(evaluate_export(path, description, params).items()):
        print(f"{name}: {float(value):.6g}")
