"""The training driver: flags -> config -> run_experiment.

    python -m hortus.vision.train --experiment=resnet_imagenet --mode=train_and_eval \
        --model_dir=/tmp/run --config_file=my.yaml --params_override=trainer.train_steps=1000

Running the same command again goes on where the last run stopped. A driver of your own imports what
registers your classes, and calls `main`:

    from absl import app, flags
    from hortus.core import flags as hortus_flags
    from hortus.vision import train
    import my_project.registry_imports

    if __name__ == "__main__":
        hortus_flags.define_flags()
        flags.mark_flags_as_required(["experiment", "mode", "model_dir"])
        app.run(train.main)
"""

import os
import sys
from typing import Any, Optional

from absl import app, flags

from hortus import engine
from hortus.core import config_definitions as cfg
from hortus.core import flags as hortus_flags
from hortus.core import launch, modes, train_utils
from hortus.vision import registry_imports

FLAGS = flags.FLAGS


def main(argv: Any = ()) -> None:
    """Runs the experiment that the flags of `hortus.core.flags` describe."""
    del argv
    if FLAGS.gin_file or FLAGS.gin_params:
        import gin

        gin.parse_config_files_and_bindings(FLAGS.gin_file, FLAGS.gin_params)
    params = train_utils.parse_configuration(FLAGS)
    is_async = FLAGS.enable_async_checkpointing if "enable_async_checkpointing" in FLAGS else True
    run(params, FLAGS.mode, FLAGS.model_dir, enable_async_checkpointing=is_async)


def run(
    params: cfg.ExperimentConfig,
    mode: str,
    model_dir: "str | os.PathLike[str]",
    run_post_eval: bool = False,
    enable_async_checkpointing: bool = True,
    strategy: Optional[Any] = None,
    **runner_arguments: Any,
) -> tuple[Any, dict[str, Any]]:
    """Checks the config, settles engine, precision, seeds and strategy, and runs the experiment.

    Args:
        params: the config, from `train_utils.parse_configuration` or `exp_factory`. The run has a
            locked copy of it.
        mode: one of `hortus.core.modes.MODES`.
        model_dir: where everything is written; the same one resumes a run.
        run_post_eval: whether to evaluate after training and return the logs.
        enable_async_checkpointing: whether checkpoints are written while training goes on.
        strategy: what `launch.prepare` returned, for a launcher that has called it.
        **runner_arguments: others of `train_lib.run_experiment`.

    Returns:
        The model, and the logs of the last evaluation.

    Raises:
        ConfigError: the config is not valid.
        RunLockedError: another process trains in the folder.
    """
    params = launch.settle(params, modes.get(mode))
    strategy = strategy or launch.prepare(params)
    # Only now: these load Keras, which must know the engine first.
    from hortus.core import performance, task_factory, train_lib
    from hortus.vision import summary_manager

    registry_imports.load_tasks()
    # Again, as importing a module may draw random numbers, and does so once in a process.
    performance.set_seed_and_determinism(params.runtime)
    with strategy.scope():
        # What is tried out leaves nothing behind.
        is_trial = modes.get(mode).trains and params.trainer.fast_dev_run
        task = task_factory.get_task(params.task, logging_dir=None if is_trial else model_dir)
    runner_arguments.setdefault(
        "eval_summary_manager", summary_manager.maybe_build_eval_summary_manager(params, model_dir)
    )
    result = train_lib.run_experiment(
        distribution_strategy=strategy,
        task=task,
        mode=mode,
        params=params,
        model_dir=model_dir,
        run_post_eval=run_post_eval,
        enable_async_checkpointing=enable_async_checkpointing,
        **runner_arguments,
    )
    if "gin" in sys.modules and engine.for_strategy(strategy).is_chief:
        train_utils.save_gin_config(mode, model_dir)
    return result


if __name__ == "__main__":
    hortus_flags.define_flags()
    flags.DEFINE_bool(
        "enable_async_checkpointing", True, "Whether checkpoints are written in the background."
    )
    flags.mark_flags_as_required(["experiment", "mode", "model_dir"])
    app.run(main)
