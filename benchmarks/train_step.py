"""Seconds per training step of classifiers, against tf-models-official and plain PyTorch.

    python benchmarks/train_step.py [--peer PYTHON] [--torch PYTHON] [--rounds N] [--batch N]
                                    [--size PIXELS] [--models resnet50,mobilenet_v2,vit_ti]

`--peer` and `--torch` are interpreters that have tf-models-official and PyTorch. Input is made up,
so that only the step counts: forward, backward, SGD with momentum, the loss and accuracy metrics
that each trainer keeps. hortus and the peer run through their own trainers, 5 steps per loop;
PyTorch in channels_last, which is its fastest layout. The peer runs twice: as its users get it, and
with oneDNN switched on by hand, which TensorFlow leaves off on CPUs without AVX-512 and hortus
switches on. "first" is building the model and tracing the first step.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import contest
import trainers

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

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
        for _ in range(trainers.STEPS):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            loss.item()

    return run


def measure(job: dict[str, Any]) -> dict[str, float]:
    """What `trainers.measure` gives, for hortus, the peer or PyTorch."""
    if job["who"] == "torch":
        return trainers.measure(lambda: torch_step(job), job["calls"])
    trainers.load_libraries(job["who"])
    train = {"hortus": trainers.hortus, "peer": trainers.peer}[job["who"]]
    return trainers.measure(
        lambda: train("image_classification", overrides(job), batches(job)), job["calls"]
    )


def main() -> None:
    """Prints a table per model."""
    parser = contest.parser(__doc__)
    parser.add_argument("--torch", help="interpreter that has PyTorch")
    parser.add_argument("--calls", type=int, default=4, help="of 5 steps, in each round")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--models", default=",".join(_BACKBONES))
    parser.add_argument("--jax", action="store_true", help="hortus on JAX too")
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(arguments.job)))
        return
    for model in arguments.models.split(","):
        contestants = {**contest.ours(arguments.jax), **contest.peers(arguments.peer)}
        if arguments.torch and model != "vit_ti":
            contestants["PyTorch"] = contest.Contestant({"who": "torch"}, arguments.torch)
        job = {name: getattr(arguments, name) for name in ("batch", "size", "calls")}
        contest.show(
            f"{model}, batch {arguments.batch} at {arguments.size} px, {os.cpu_count()} CPUs, "
            f"medians of {arguments.rounds} rounds",
            contest.play(__file__, contestants, {"model": model, **job}, arguments.rounds),
            base="hortus",
            units=trainers.UNITS,
        )


if __name__ == "__main__":
    main()
