"""Seconds per training step of semantic segmentation, against tf-models-official.

    python benchmarks/segmentation_step.py [--peer PYTHON] [--rounds N] [--batch N] [--size PIXELS]
                                           [--jax]

`--peer` is an interpreter that has tf-models-official. The experiment is seg_resnetfpn_pascal:
ResNet-50-FPN, 21 classes. Input is made up, so that only the step counts: forward, backward, SGD
with momentum, the loss and the mean IoU, all through each side's own trainer, 5 steps per loop. The
peer runs twice: as its users get it, and with oneDNN switched on by hand, which TensorFlow leaves
off on CPUs without AVX-512 and hortus switches on. "first" is building the model and tracing the
first step.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import contest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_EXPERIMENT = "seg_resnetfpn_pascal"
_STEPS = 5
"""Steps per call."""
_CLASSES = 21


def overrides(job: dict[str, Any]) -> dict[str, Any]:
    """What differs from the experiment, alike for hortus and the peer."""
    return {
        "runtime": {"distribution_strategy": "one_device", "enable_xla": False},
        "task": {
            "model": {"input_size": [job["size"], job["size"], 3]},
            "train_data": {"global_batch_size": job["batch"]},
        },
        "trainer": {
            "optimizer_config": {
                "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.007}},
                "warmup": {"type": None},
            }
        },
    }


def batches(job: dict[str, Any]) -> Any:
    """The same batch of random images and masks again and again."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    batch, size = job["batch"], job["size"]
    images = random.standard_normal((batch, size, size, 3), "float32")
    # Areas, not noise, with pixels around them that do not count.
    masks = random.integers(0, _CLASSES, (batch, 8, 8, 1)).repeat(size // 8, 1).repeat(size // 8, 2)
    masks[:, :8] = 255
    labels = {
        "masks": masks.astype("int32"),
        "valid_masks": masks != 255,
        "image_info": np.array([[[size, size]] * 2 + [[1, 1], [0, 0]]] * batch, "float32"),
    }
    return tf.data.Dataset.from_tensors((images, labels)).repeat().prefetch(2)


def hortus_step(job: dict[str, Any]) -> Callable[[], Any]:
    """The trainer of hortus."""
    from hortus.core import base_trainer, distribute_utils, exp_factory, task_factory
    from hortus.vision import registry_imports

    registry_imports.load_tasks()
    config = exp_factory.get_exp_config(_EXPERIMENT)
    config.override(overrides(job))
    with distribute_utils.get_distribution_strategy("one_device").scope():
        task = task_factory.get_task(config.task)
        trainer = base_trainer.Trainer(
            config,
            task,
            task.build_model(),
            task.create_optimizer(config.trainer.optimizer_config),
            evaluate=False,
            train_dataset=batches(job),
        )
    return lambda: trainer.train(_STEPS)


def peer_step(job: dict[str, Any]) -> Callable[[], Any]:
    """The trainer of tf-models-official."""
    import tensorflow as tf
    from official.core import base_trainer, exp_factory, task_factory
    from official.vision import registry_imports  # noqa: F401

    config = exp_factory.get_exp_config(_EXPERIMENT)
    config.override(overrides(job))
    with tf.distribute.OneDeviceStrategy("cpu:0").scope():
        task = task_factory.get_task(config.task)
        trainer = base_trainer.Trainer(
            config,
            task,
            task.build_model(),
            task.create_optimizer(config.trainer.optimizer_config),
            train=True,
            evaluate=False,
            train_dataset=batches(job),
        )
    return lambda: trainer.train(tf.constant(_STEPS))


_CONTESTANTS = {"hortus": hortus_step, "peer": peer_step}


def measure(job: dict[str, Any]) -> dict[str, float]:
    """Seconds of the first call, and per step of the next ones."""
    import keras  # noqa: F401  (imports are not part of the time)
    import tensorflow  # noqa: F401

    begin = time.perf_counter()
    run = _CONTESTANTS[job["who"]](job)
    run()
    first = time.perf_counter() - begin
    times = []
    for _ in range(job["calls"]):
        begin = time.perf_counter()
        run()
        times.append((time.perf_counter() - begin) / _STEPS)
    step = statistics.median(times)
    return {"step": step, "first": first - _STEPS * step}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--peer", help="interpreter that has tf-models-official")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=3, help="of 5 steps, in each round")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--jax", action="store_true", help="hortus on JAX too")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(json.loads(arguments.job))))
        return
    contestants = {"hortus": ("hortus", sys.executable, {"KERAS_BACKEND": "tensorflow"})}
    if arguments.jax:
        contestants["hortus on JAX"] = ("hortus", sys.executable, {"KERAS_BACKEND": "jax"})
    if arguments.peer:
        contestants["tf-models-official"] = ("peer", arguments.peer, {})
        with_onednn = {"TF_ENABLE_ONEDNN_OPTS": "1"}
        contestants["tf-models-official, oneDNN"] = ("peer", arguments.peer, with_onednn)
    rounds: dict[str, list[dict[str, float]]] = {}
    settings = {name: getattr(arguments, name) for name in ("batch", "size", "calls")}
    for _ in range(arguments.rounds):
        for name, (who, python, environment) in contestants.items():
            numbers = contest.run(__file__, {"who": who, **settings}, python, **environment)
            rounds.setdefault(name, []).append(numbers)
    contest.show(
        f"{_EXPERIMENT}, batch {arguments.batch} at {arguments.size} px, {os.cpu_count()} CPUs, "
        f"medians of {arguments.rounds} rounds",
        {name: contest.medians(numbers) for name, numbers in rounds.items()},
        base="hortus",
        units={"step": ("ms/step", 1e3), "first": ("first, s", 1.0)},
    )


if __name__ == "__main__":
    main()
