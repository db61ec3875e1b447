"""`hortus train` and `hortus eval`."""

import os
from collections.abc import Sequence
from typing import Optional

from hortus.cli.errors import CommandError
from hortus.core import config_definitions as cfg
from hortus.core import exp_parser, modes


def run(
    experiment: Optional[str],
    mode: str,
    model_dir: str,
    config_files: Sequence[str],
    overrides: Sequence[str],
    enable_async_checkpointing: bool = True,
) -> None:
    """Trains or evaluates, and prints where to look next.

    Without an experiment, which a run to evaluate can do, its own config counts.
    """
    from hortus.core.run_folder import RunFolder

    if mode in modes.EVAL_MODES and not os.path.isdir(model_dir):
        raise CommandError(f"--model_dir {model_dir}: there is no such folder to evaluate")
    if experiment is None:
        params = _config_of_run(model_dir, config_files, overrides)
    else:
        params = exp_parser.parse_config(
            exp_parser.ParseConfigOptions(
                experiment=experiment, config_file=config_files, params_override=overrides
            )
        )
    from hortus.vision import train

    _, logs = train.run(
        params, mode, model_dir, enable_async_checkpointing=enable_async_checkpointing
    )
    if params.trainer.fast_dev_run:
        print("Everything ran; nothing was kept (trainer.fast_dev_run).")
    elif logs:
        print(f"Done. Metrics of all evaluations: {RunFolder(model_dir).metrics}")
    else:
        print(f"Done. Checkpoints and summaries: {model_dir}")


def _config_of_run(
    model_dir: str, config_files: Sequence[str], overrides: Sequence[str]
) -> cfg.ExperimentConfig:
    """The config of a run as its folder tells it, on the engine that it was trained with."""
    from hortus import engine, hyperparams
    from hortus.core import run_record
    from hortus.vision.serving import run_config
    from hortus.vision.serving.run import settle_engine

    identity = run_record.identity(model_dir)
    settle_engine(identity.engine if identity is not None else None)
    params = run_config.read_config(model_dir)
    params.override({"runtime": {"engine": engine.name()}})
    for path in config_files:
        params.override(hyperparams.load_overrides(path))
    for text in overrides:
        params.override(hyperparams.parse_overrides(text, "--params_override"))
    params.validate()
    return params
