"""Times of a checkpoint the size of ResNet-50 with momentum: 205 MB in 428 variables.

    KERAS_BACKEND=tensorflow python benchmarks/checkpoint.py [--directory DIR] [--runs N]

"blocks" is what training waits for: the time `save` takes to return. "commit" is the time until the
checkpoint is on the disk, flushed. "restore" reads, verifies and assigns. The same bytes through
one NumPy array, copied, written and flushed, and read, show what memory and disk allow.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from rich import console, table

from hortus.core import checkpoints

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


class Weights(keras.layers.Layer):
    """The variables of ResNet-50, without its computation."""

    def __init__(self) -> None:
        super().__init__(name="resnet50")
        self.kernels = [self._weight(shape) for shape, count in _KERNELS for _ in range(count)]
        self.norms = [
            [self._weight(kernel.shape[-1:], is_trainable) for is_trainable in (1, 1, 0, 0)]
            for kernel in self.kernels
        ]
        self.logits = [self._weight((2048, 1000)), self._weight((1000,))]

    def _weight(self, shape: Any, is_trainable: int = 1) -> Any:
        return self.add_weight(shape=tuple(shape), trainable=bool(is_trainable))


def make_checkpoint() -> checkpoints.Checkpoint:
    """Random weights, and the momentum of each trainable one."""
    model, optimizer = Weights(), keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    random = np.random.default_rng(0)
    for variable in [*model.variables, *optimizer.variables]:
        if keras.backend.is_float_dtype(variable.dtype):
            variable.assign(random.standard_normal(tuple(variable.shape), dtype="float32"))
    return checkpoints.Checkpoint(model=model, optimizer=optimizer)


def seconds(function: Callable[[], Any]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(directory: str, runs: int) -> tuple[dict[str, list[float]], int]:
    """All times in seconds, and the size of a checkpoint in bytes."""
    checkpoint = make_checkpoint()
    manager = checkpoints.CheckpointManager(checkpoint, directory, max_to_keep=2)
    times: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        times.setdefault(name, []).append(value)

    path = ""
    # The first run of all is for warming up.
    for step in range(runs + 1):
        start = time.perf_counter()
        path = manager.save(step)
        blocked = time.perf_counter() - start
        manager.wait()
        committed = time.perf_counter() - start
        restored = seconds(manager.restore)
        if step:
            note("save: blocks", blocked)
            note("save: commit", committed)
            note("restore", restored)
    manager.close()
    size = sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))

    data = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    file = os.path.join(directory, "plain")
    for _ in range(runs):
        note("same bytes copied in memory", seconds(data.copy))
        note("same bytes written plainly", seconds(lambda: _write(file, data)))
        note("same bytes read plainly", seconds(lambda: np.fromfile(file, np.uint8)))
    return times, size


def _write(path: str, data: np.ndarray) -> None:
    with open(path, "wb") as file:
        data.tofile(file)
        file.flush()
        os.fsync(file.fileno())


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", help="where to write; by default a temporary folder")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    directory = tempfile.mkdtemp(dir=options.directory)
    try:
        times, size = measure(directory, options.runs)
    finally:
        shutil.rmtree(directory)
    title = f"Checkpoint of {size / 1e6:.0f} MB, {keras.config.backend()}, {options.runs} runs"
    result = table.Table(title=title)
    for column in ("", "median", "least", "most"):
        result.add_column(column, justify="left" if not column else "right")
    for name, values in times.items():
        shown = (statistics.median(values), min(values), max(values))
        result.add_row(name, *(f"{value * 1000:.0f} ms" for value in shown))
    console.Console().print(result)


if __name__ == "__main__":
    main()
