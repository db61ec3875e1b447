"""Milliseconds of 3x3 convolutions and their gradients: direct, and by Winograd's algorithm.

    python benchmarks/convolution.py [--turns N]

TensorFlow on a CPU. "expected" is what `winograd.speed_up` says, by which a layer chooses; it was
fitted to a table like this one.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import hortus  # noqa: F401  gives TensorFlow its settings before it is loaded

_SIZES = [
    # batch, height and width, channels, filters
    (4, 64, 64, 64),
    (4, 32, 128, 128),
    (4, 32, 256, 256),
    (4, 32, 256, 819),
    (4, 16, 256, 256),
    (4, 8, 256, 256),
    (4, 64, 128, 128),
    (4, 64, 256, 256),
    (16, 32, 64, 64),
    (16, 16, 128, 128),
    (16, 8, 256, 256),
    (16, 4, 512, 512),
]


def compiled(convolution: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Outputs and both gradients, in one function."""
    import tensorflow as tf

    @tf.function(autograph=False)
    def run(inputs: Any, kernel: Any, upstream: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([inputs, kernel])
            outputs = convolution(inputs, kernel)
        return outputs, *tape.gradient(outputs, [inputs, kernel], upstream)

    return run


def main() -> None:
    """Prints the table."""
    import tensorflow as tf
    from rich import console, table

    from hortus.engine.tensorflow import winograd

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=15)
    arguments = parser.parse_args()
    ways = {
        "direct": compiled(lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME")),
        "winograd": compiled(lambda x, kernel: winograd.convolution([x], kernel)[0]),
    }
    shown = table.Table("inputs", "filters", "direct, ms", "winograd, ms", "ratio", "expected")
    for batch, side, channels, filters in _SIZES:
        inputs = tf.random.normal([batch, side, side, channels])
        kernel = tf.random.normal([3, 3, channels, filters])
        upstream = tf.random.normal([batch, side, side, filters])
        times: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(arguments.turns + 2):
            for way, run in ways.items():
                begin = time.perf_counter()
                run(inputs, kernel, upstream)
                if turn > 1:
                    times[way].append(1e3 * (time.perf_counter() - begin))
        direct, fast = (statistics.median(times[way]) for way in ways)
        shown.add_row(
            f"{batch} x {side} x {side} x {channels}",
            str(filters),
            *(f"{number:.1f}" for number in (direct, fast)),
            f"{direct / fast:.2f}",
            f"{winograd.speed_up([inputs], kernel):.2f}",
        )
    console.Console().print(shown)


if __name__ == "__main__":
    main()
