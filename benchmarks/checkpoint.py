"""Times of a checkpoint the size of ResNet-50 with momentum: 205 MB in 428 variables.

    python benchmarks/checkpoint.py [--peer PYTHON] [--rounds N] [--saves N] [--directory DIR]

"blocks" is what training waits for: the time `save` takes to return. "commit" is the time until the
checkpoint is written; hortus also flushes it to the disk and checks it when it reads. "restore"
reads and assigns. `--peer` is an interpreter that has TensorFlow, whose
`tf.train.CheckpointManager` is what tf-models-official saves with; by default it does not save in
the background. The same bytes through one NumPy array, copied, written and flushed, and read, show
what memory and disk allow.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import contest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# (kernel shape, count): the convolutions of ResNet-50 v1.5 and its classifier.
_KERNELS = [
    ((7, 7, 3, 64), 1),
    ((1, 1, 64, 64), 1),
    ((1, 1, 64, 256), 4),
    ((1, 1, 256, 64), 2),
    ((3, 3, 64, 64), 3),
    ((1, 1, 256, 128), 1),
    ((3, 3, 128, 128), 4),
    ((1, 1, 128, 512), 4),
    ((1, 1, 256, 512), 1),
    ((1, 1, 512, 128), 3),
    ((1, 1, 512, 256), 1),
    ((3, 3, 256, 256), 6),
    ((1, 1, 256, 1024), 6),
    ((1, 1, 512, 1024), 1),
    ((1, 1, 1024, 256), 5),
    ((1, 1, 1024, 512), 1),
    ((3, 3, 512, 512), 3),
    ((1, 1, 512, 2048), 3),
    ((1, 1, 1024, 2048), 1),
    ((1, 1, 2048, 512), 2),
]


def shapes() -> list[tuple[tuple[int, ...], bool]]:
    """Of all weights, and whether they are trained."""
    kernels = [shape for shape, count in _KERNELS for _ in range(count)]
    norms = [
        (shape[-1:], is_trained) for shape in kernels for is_trained in (True, True, False, False)
    ]
    return [*((shape, True) for shape in kernels), *norms, ((2048, 1000), True), ((1000,), True)]


Store = tuple[Callable[[int], Any], Callable[[], Any], Callable[[], Any]]
"""Saves as a step, waits until that is done, and restores."""


def hortus_store(directory: str) -> Store:
    """Checkpoints of hortus."""
    import keras
    import numpy as np

    from hortus.core import checkpoints

    class Weights(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__(name="resnet50")
            self.all = [self.add_weight(shape=shape, trainable=it) for shape, it in shapes()]

    model, optimizer = Weights(), keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    random = np.random.default_rng(0)
    for variable in [*model.variables, *optimizer.variables]:
        if keras.backend.is_float_dtype(variable.dtype):
            variable.assign(random.standard_normal(tuple(variable.shape), dtype="float32"))
    manager = checkpoints.CheckpointManager(
        checkpoints.Checkpoint(model=model, optimizer=optimizer), directory, max_to_keep=2
    )
    return manager.save, manager.wait, manager.restore


def peer_store(directory: str, in_background: bool) -> Store:
    """TensorFlow's own, used as tf-models-official uses them."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)

    def variable(shape: Any) -> tf.Variable:
        return tf.Variable(random.standard_normal(shape, dtype="float32"))

    weights = [variable(shape) for shape, _ in shapes()]
    momenta = [variable(shape) for shape, is_trained in shapes() if is_trained]
    checkpoint = tf.train.Checkpoint(model=weights, optimizer=momenta)
    manager = tf.train.CheckpointManager(checkpoint, directory, max_to_keep=2)
    options = tf.train.CheckpointOptions(enable_async=in_background)
    return (
        lambda step: manager.save(step, options=options),
        checkpoint.sync if in_background else lambda: None,
        lambda: checkpoint.restore(manager.latest_checkpoint).assert_consumed(),
    )


def plain_store(directory: str) -> Store:
    """The same bytes in one array."""
    import numpy as np

    sizes = [int(np.prod(shape)) * (1 + is_trained) for shape, is_trained in shapes()]
    data = np.random.default_rng(0).standard_normal(sum(sizes), dtype="float32")
    path = os.path.join(directory, "plain")

    def write() -> None:
        with open(path, "wb") as file:
            data.tofile(file)
            file.flush()
            os.fsync(file.fileno())

    return lambda _: data.copy(), write, lambda: np.fromfile(path, "float32")


_STORES: dict[str, Callable[[str], Store]] = {
    "hortus": hortus_store,
    "peer": lambda directory: peer_store(directory, False),
    "peer in background": lambda directory: peer_store(directory, True),
    "plain": plain_store,
}


def measure(job: dict[str, Any]) -> dict[str, float]:
    """Medians in seconds."""
    times: dict[str, list[float]] = {"blocks": [], "commit": [], "restore": []}
    with tempfile.TemporaryDirectory(dir=job["directory"]) as directory:
        save, wait, restore = _STORES[job["who"]](directory)
        # The first save of all is for warming up.
        for step in range(job["saves"] + 1):
            start = time.perf_counter()
            save(step)
            blocked = time.perf_counter()
            wait()
            committed = time.perf_counter()
            restore()
            if step:
                times["blocks"].append(blocked - start)
                times["commit"].append(committed - start)
                times["restore"].append(time.perf_counter() - committed)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Prints the table."""
    parser = contest.parser(__doc__)
    parser.add_argument("--saves", type=int, default=5, help="of each contestant in each round")
    parser.add_argument("--directory", help="where to write; by default a temporary folder")
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(arguments.job)))
        return
    contestants = contest.ours(jax=True)
    if arguments.peer:
        for name, who in (("", "peer"), (", in background", "peer in background")):
            contestants[f"tf-models-official{name}"] = contest.Contestant(
                {"who": who}, arguments.peer
            )
    contestants["same bytes, plainly"] = contest.Contestant({"who": "plain"})
    job = {"saves": arguments.saves, "directory": arguments.directory}
    contest.show(
        f"Checkpoint of 205 MB, medians of {arguments.rounds} rounds",
        contest.play(__file__, contestants, job, arguments.rounds),
        base="hortus",
        units={name: (f"{name}, ms", 1e3) for name in ("blocks", "commit", "restore")},
    )


if __name__ == "__main__":
    main()
