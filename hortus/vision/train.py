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

from absl import app, flags, logging

from hortus import engine, hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import flags as hortus_flags
from hortus.core import run_record, train_utils
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
    **runner_arguments: Any,
) -> tuple[Any, dict[str, Any]]:
    """Settles engine, precision, seeds and strategy, and runs the experiment.

    Args:
        params: the config, from `train_utils.parse_configuration` or `exp_factory`.
        mode: one of `hortus.core.flags.MODES`.
        model_dir: where everything is written; the same one resumes a run.
        run_post_eval: whether to evaluate after training and return the logs.
        enable_async_checkpointing: whether checkpoints are written while training goes on.
        **runner_arguments: others of `train_lib.run_experiment`.

    Returns:
        The model, and the logs of the last evaluation.
    """
    params.validate_for_run(mode)
    runtime = params.runtime
    engine.select(_engine_of(params), runtime.virtual_cpu_devices)
    engine.load()
    # Only now: these load Keras, which must know the engine first.
    from hortus.core import distribute_utils, performance, task_factory, train_lib
    from hortus.vision import summary_manager

    registry_imports.load_tasks()
    does_train = mode in train_lib.TRAIN_MODES
    performance.set_seed_and_determinism(runtime)
    performance.set_mixed_precision_policy(runtime.mixed_precision_dtype)
    performance.set_fast_kernels(runtime.fast_kernels)
    strategy = distribute_utils.get_distribution_strategy(
        distribution_strategy=runtime.distribution_strategy,
        num_gpus=runtime.num_gpus,
        all_reduce_alg=runtime.all_reduce_alg,
        num_packs=runtime.num_packs,
        tpu_address=runtime.tpu,
        worker_hosts=runtime.worker_hosts,
        task_index=runtime.task_index,
        virtual_cpu_devices=runtime.virtual_cpu_devices,
    )
    with strategy.scope():
        # What is tried out leaves nothing behind.
        folder = None if does_train and params.trainer.fast_dev_run else model_dir
        task = task_factory.get_task(params.task, logging_dir=folder)
    is_chief = engine.for_strategy(strategy).is_chief
    if does_train and is_chief and not params.trainer.fast_dev_run:
        for line in train_utils.changes_since_last_run(params, model_dir):
            logging.warning(line)
        train_utils.serialize_config(params, model_dir)
        run_record.write(model_dir, params, engine.name())
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
    if is_chief and "gin" in sys.modules:
        train_utils.save_gin_config(mode, model_dir)
    return result


def _engine_of(params: cfg.ExperimentConfig) -> Optional[str]:
    """The engine that the config asks for; None where it does not, and the environment decides."""
    if params.origin("runtime.engine") == hyperparams.Origin("default"):
        return None
    return params.runtime.engine


if __name__ == "__main__":
    hortus_flags.define_flags()
    flags.DEFINE_bool(
        "enable_async_checkpointing", True, "Whether checkpoints are written in the background."
    )
    flags.mark_flags_as_required(["experiment", "mode", "model_dir"])
    app.run(main)
