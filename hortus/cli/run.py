"""`hortus train` and `hortus eval`."""

import os
from collections.abc import Sequence

from hortus.cli.errors import CommandError


def run(
    experiment: str,
    mode: str,
    model_dir: str,
    config_files: Sequence[str],
    overrides: Sequence[str],
    enable_async_checkpointing: bool = True,
) -> None:
    """Trains or evaluates, and prints where to look next."""
    from hortus.core import exp_parser

    params = exp_parser.parse_config(
        exp_parser.ParseConfigOptions(
            experiment=experiment, config_file=config_files, params_override=overrides
        )
    )
    if mode in ("eval", "continuous_eval") and not os.path.isdir(model_dir):
        raise CommandError(f"--model_dir {model_dir}: there is no such folder to evaluate")
    from hortus.vision import train

    _, logs = train.run(
        params, mode, model_dir, enable_async_checkpointing=enable_async_checkpointing
    )
    if params.trainer.fast_dev_run:
        print("Everything ran; nothing was kept (trainer.fast_dev_run).")
    elif logs:
        print(f"Done. Metrics of all evaluations: {os.path.join(model_dir, 'metrics.jsonl')}")
    else:
        print(f"Done. Checkpoints and summaries: {model_dir}")
