"""The trainers of hortus and of tf-models-official on an experiment with made-up input."""

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import contest

STEPS = 5
"""Steps per call, so per loop of a trainer."""
UNITS = {
    "step": ("ms/step", 1e3),
    "first": ("first, s", 1.0),
    "memory": ("peak memory, MB", 1e-6),
}
"""What `measure` gives, for `contest.show`."""


def hortus(experiment: str, overrides: contest.Job, dataset: Any) -> Callable[[], Any]:
    """A function that trains `STEPS` steps with hortus."""
    from hortus.core import base_trainer, distribute_utils, exp_factory, task_factory
    from hortus.vision import registry_imports

    registry_imports.load_tasks()
    config = exp_factory.get_exp_config(experiment)
    config.override(overrides)
    with distribute_utils.get_distribution_strategy("one_device").scope():
        task = task_factory.get_task(config.task)
        trainer = base_trainer.Trainer(
            config,
            task,
            task.build_model(),
            task.create_optimizer(config.trainer.optimizer_config),
            evaluate=False,
            train_dataset=dataset,
        )
    return lambda: trainer.train(STEPS)


def peer(experiment: str, overrides: contest.Job, dataset: Any) -> Callable[[], Any]:
    """A function that trains `STEPS` steps with tf-models-official."""
    import tensorflow as tf
    from official.core import base_trainer, exp_factory, task_factory
    from official.vision import registry_imports  # noqa: F401

    config = exp_factory.get_exp_config(experiment)
    config.override(overrides)
    with tf.distribute.OneDeviceStrategy("cpu:0").scope():
        task = task_factory.get_task(config.task)
        trainer = base_trainer.Trainer(
            config,
            task,
            task.build_model(),
            task.create_optimizer(config.trainer.optimizer_config),
            train=True,
            evaluate=False,
            train_dataset=dataset,
        )
    return lambda: trainer.train(tf.constant(STEPS))


def measure(make: Callable[[], Callable[[], Any]], calls: int) -> contest.Numbers:
    """Seconds per step, seconds to build and trace, and the highest memory of the process.

    Args:
        make: makes a function that trains `STEPS` steps.
        calls: of that function, after a first one that traces and a second one that warms up.
    """
    begin = time.perf_counter()
    run = make()
    run()
    first = time.perf_counter() - begin
    run()
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        run()
        times.append((time.perf_counter() - begin) / STEPS)
    step = statistics.median(times)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"step": step, "first": first - STEPS * step, "memory": memory}


def load_libraries(who: str) -> None:
    """Imports what takes long, so that it is not part of the time."""
    if who == "hortus":  # before TensorFlow, which it gives its settings
        import hortus  # noqa: F401
    import keras  # noqa: F401
    import tensorflow  # noqa: F401
