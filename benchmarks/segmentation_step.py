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

import json
import os
from typing import Any

import contest
import trainers

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_EXPERIMENT = "seg_resnetfpn_pascal"
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


def measure(job: dict[str, Any]) -> dict[str, float]:
    """What `trainers.measure` gives, for hortus or the peer."""
    trainers.load_libraries(job["who"])
    train = {"hortus": trainers.hortus, "peer": trainers.peer}[job["who"]]
    return trainers.measure(lambda: train(_EXPERIMENT, overrides(job), batches(job)), job["calls"])


def main() -> None:
    """Prints the table."""
    parser = contest.parser(__doc__)
    parser.add_argument("--calls", type=int, default=3, help="of 5 steps, in each round")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--jax", action="store_true", help="hortus on JAX too")
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(arguments.job)))
        return
    job = {name: getattr(arguments, name) for name in ("batch", "size", "calls")}
    contestants = {**contest.ours(arguments.jax), **contest.peers(arguments.peer)}
    contest.show(
        f"{_EXPERIMENT}, batch {arguments.batch} at {arguments.size} px, {os.cpu_count()} CPUs, "
        f"medians of {arguments.rounds} rounds",
        contest.play(__file__, contestants, job, arguments.rounds),
        base="hortus",
        units=trainers.UNITS,
    )


if __name__ == "__main__":
    main()
