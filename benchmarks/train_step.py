"""Seconds per training step of classifiers, against tf-models-official and plain PyTorch.

    python benchmarks/train_step.py [--peer PYTHON] [--torch PYTHON] [--rounds N] [--batch N]
                                    [--size PIXELS] [--models resnet50,mobilenet_v2,vit_ti]

`--peer` and `--torch` are interpreters that have tf-models-official and PyTorch. Input is made up,
so that only the step counts: forward, backward, SGD with momentum, the loss and accuracy metrics
that each trainer keeps. hortus and the peer run through their own trainers, 5 steps per loop;
PyTorch in channels_last, which is its fastest layout. The peer runs twice: as its users get it, and
without oneDNN, as TensorFlow comes on CPUs without AVX-512. "first" is building the model and
tracing the first step.
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

_STEPS = 5
"""Steps per call."""
_BACKBONES = {
    "resnet50": {"type": "resnet", "resnet": {"model_id": 50}},
    "mobilenet_v2": {"type": "mobilenet", "mobilenet": {"model_id": "MobileNetV2"}},
    "vit_ti": {"type": "vit", "vit": {"model_name": "vit-ti16"}},
}
_CLASSES = 1000


def overrides(job: dict[str, Any]) -> dict[str, Any]:
    """The experiment `image_classification`, alike for hortus and the peer."""
    return {
        "runtime": {"distribution_strategy": "one_device", "enable_xla": False},
        "task": {
            "model": {
                "num_classes": _CLASSES,
                "input_size": [job["size"], job["size"], 3],
                "backbone": _BACKBONES[job["model"]],
            },
            "losses": {"l2_weight_decay": 1e-4},
            "train_data": {"global_batch_size": job["batch"]},
        },
        "trainer": {
            "optimizer_config": {
                "optimizer": {"type": "sgd", "sgd": {"momentum": 0.9}},
                "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.01}},
            }
        },
    }


def batches(job: dict[str, Any]) -> Any:
    """The same batch of random images again and again."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    images = random.standard_normal((job["batch"], job["size"], job["size"], 3), "float32")
    labels = random.integers(0, _CLASSES, job["batch"]).astype("int32")
    return tf.data.Dataset.from_tensors((images, labels)).repeat().prefetch(2)


def hortus_step(job: dict[str, Any]) -> Callable[[], Any]:
    """The trainer of hortus."""
    from hortus.core import base_trainer, distribute_utils, exp_factory, task_factory
    from hortus.vision import registry_imports

    registry_imports.load_tasks()
    config = exp_factory.get_exp_config("image_classification")
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

    config = exp_factory.get_exp_config("image_classification")
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


def torch_step(job: dict[str, Any]) -> Callable[[], Any]:
    """A plain loop in PyTorch."""
    import torch
    import torch_models

    torch.manual_seed(0)
    model = torch_models.MODELS[job["model"]](_CLASSES).to(memory_format=torch.channels_last)
    images = torch.randn(job["batch"], 3, job["size"], job["size"])
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, _CLASSES, (job["batch"],))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    loss_of = torch.nn.CrossEntropyLoss()

    def run() -> None:
        for _ in range(_STEPS):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            loss.item()

    return run


_CONTESTANTS = {"hortus": hortus_step, "peer": peer_step, "torch": torch_step}


def measure(job: dict[str, Any]) -> dict[str, float]:
    """Seconds of the first call, and per step of the next ones."""
    if job["who"] != "torch":
        import keras  # noqa: F401  (imports are not part of the time)
        import tensorflow  # noqa: F401
    begin = time.perf_counter()
    run = _CONTESTANTS[job["who"]](job)
    run()
    first = time.perf_counter() - begin
    run()
    times = []
    for _ in range(job["calls"]):
        begin = time.perf_counter()
        run()
        times.append((time.perf_counter() - begin) / _STEPS)
    step = statistics.median(times)
    return {"step": step, "first": first - _STEPS * step}


def main() -> None:
    """Prints a table per model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--peer", help="interpreter that has tf-models-official")
    parser.add_argument("--torch", help="interpreter that has PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=4, help="of 5 steps, in each round")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--models", default=",".join(_BACKBONES))
    parser.add_argument("--jax", action="store_true", help="hortus on JAX too")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(json.loads(arguments.job))))
        return
    tensorflow = {"KERAS_BACKEND": "tensorflow"}
    contestants = {"hortus": ("hortus", sys.executable, tensorflow)}
    if arguments.jax:
        contestants["hortus on JAX"] = ("hortus", sys.executable, {"KERAS_BACKEND": "jax"})
    if arguments.peer:
        contestants["tf-models-official"] = ("peer", arguments.peer, {})
        contestants["tf-models-official, no oneDNN"] = (
            "peer",
            arguments.peer,
            {"TF_ENABLE_ONEDNN_OPTS": "0"},
        )
    if arguments.torch:
        contestants["PyTorch"] = ("torch", arguments.torch, {})
    for model in arguments.models.split(","):
        rounds: dict[str, list[dict[str, float]]] = {}
        for _ in range(arguments.rounds):
            for name, (who, python, environment) in contestants.items():
                if who == "torch" and model == "vit_ti":
                    continue
                job = {
                    "who": who,
                    "model": model,
                    "batch": arguments.batch,
                    "size": arguments.size,
                    "calls": arguments.calls,
                }
                numbers = contest.run(__file__, job, python, **environment)
                rounds.setdefault(name, []).append(numbers)
        contest.show(
            f"{model}, batch {arguments.batch} at {arguments.size} px, {os.cpu_count()} CPUs, "
            f"medians of {arguments.rounds} rounds",
            {name: contest.medians(numbers) for name, numbers in rounds.items()},
            base="hortus",
            units={"step": ("ms/step", 1e3), "first": ("first, s", 1.0)},
        )


if __name__ == "__main__":
    main()
