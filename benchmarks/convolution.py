"""Milliseconds of convolutions and their gradients, in TensorFlow's way and in those of hortus.

    python benchmarks/convolution.py [--turns N]

TensorFlow on a CPU. 3x3 convolutions: by TensorFlow's kernels alone; with the gradient by the
kernel as a matrix product; by Winograd's algorithm, with what `winograd.speed_up` expects of it.
1x1 convolutions and the batch normalisation after them: by TensorFlow's kernels; the convolution as
a matrix product; both in one. 1x1 convolutions alone: by TensorFlow's kernels; as plain matrix
products; as those of hortus, which pad rows of unlucky widths. A star stands at the way that layers
take.
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

_SIZES_3X3 = [
    # batch, height and width, channels, filters
    (32, 24, 32, 32),
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
_SIZES_1X1 = [
    # of MobileNetV2
    (16, 64, 16, 96),
    (16, 32, 24, 144),
    (16, 16, 32, 192),
    (16, 8, 96, 576),
    (16, 4, 160, 960),
    # of ResNet-50
    (16, 32, 64, 256),
    (16, 16, 128, 512),
    (16, 8, 256, 1024),
    (16, 4, 512, 2048),
]
_SIZES_PADDED = [
    # of ResNet-50; the first and the last are not padded
    (16, 16, 128, 512),
    (16, 8, 256, 1024),
    (16, 8, 1024, 256),
    (16, 4, 512, 2048),
]
_EPSILON = 1e-3

Row = tuple[tuple[int, ...], dict[str, float], str, dict[str, float]]
"""Sizes, milliseconds by way, the way that layers take, and other numbers by name."""


def compiled(layer: Callable[..., Any]) -> Callable[..., Any]:
    """Outputs and all gradients, in one function."""
    import tensorflow as tf

    @tf.function(autograph=False)
    def run(upstream: Any, *values: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(values)
            outputs = layer(*values)
        return outputs, *tape.gradient(outputs, values, upstream)

    return run


def compare(
    ways: dict[str, Callable[..., Any]], values: list[Any], filters: int, turns: int
) -> dict[str, float]:
    """Median milliseconds of each way, which take turns; the first of `values` are the inputs."""
    import tensorflow as tf

    upstream = tf.random.normal([*values[0].shape[:3], filters])
    functions = {way: compiled(layer) for way, layer in ways.items()}
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(turns + 2):
        for way, run in functions.items():
            begin = time.perf_counter()
            run(upstream, *values)
            if turn > 1:
                times[way].append(1e3 * (time.perf_counter() - begin))
    return {way: statistics.median(each) for way, each in times.items()}


def show(title: str, rows: list[Row]) -> None:
    """Prints a table."""
    from rich import console, table

    shown = table.Table("inputs", "filters", *rows[0][1], *rows[0][3], title=title)
    for (batch, side, channels, filters), times, chosen, more in rows:
        shown.add_row(
            f"{batch} x {side} x {side} x {channels}",
            str(filters),
            *(f"{each:.1f}{' *' if way == chosen else '  '}" for way, each in times.items()),
            *(f"{number:.2f}" for number in more.values()),
        )
    console.Console(width=120).print(shown)


def rows_3x3(turns: int) -> list[Row]:
    """The first table."""
    import tensorflow as tf

    from hortus.engine.tensorflow import convolutions, kernels, winograd

    ways = {
        "TensorFlow": lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME"),
        "products": lambda x, kernel: convolutions.convolution_3x3(x, kernel, (1, 1)),
        "Winograd": lambda x, kernel: winograd.convolution([x], kernel)[0],
    }
    rows = []
    for batch, side, channels, filters in _SIZES_3X3:
        inputs = tf.random.normal([batch, side, side, channels])
        kernel = tf.random.normal([3, 3, channels, filters])
        expected = winograd.speed_up([inputs], kernel)
        chosen = "Winograd" if expected >= kernels._LEAST_SPEED_UP else "TensorFlow"
        if chosen == "TensorFlow" and convolutions.is_3x3_faster(inputs, kernel, (1, 1)):
            chosen = "products"
        times = compare(ways, [inputs, kernel], filters, turns)
        size = (batch, side, channels, filters)
        ratio = times["TensorFlow"] / times["Winograd"]
        rows.append((size, times, chosen, {"ratio of Winograd": ratio, "expected": expected}))
    return rows


def rows_1x1(turns: int) -> list[Row]:
    """The second table."""
    import tensorflow as tf

    from hortus.engine.tensorflow import convolutions, kernels, normalized_convolution

    def normalized(convolution: Callable[..., Any]) -> Callable[..., Any]:
        def layer(x: Any, kernel: Any, gamma: Any, beta: Any) -> Any:
            outputs = convolution(x, kernel)
            return kernels.fused_batch_norm(outputs, gamma, beta, epsilon=_EPSILON)[0]

        return layer

    ways = {
        "TensorFlow": normalized(lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME")),
        "products": normalized(lambda x, kernel: convolutions.convolution_1x1(x, kernel, (1, 1))),
        "in one": lambda x, kernel, gamma, beta: normalized_convolution.convolution(
            x, kernel, (1, 1), gamma, beta, epsilon=_EPSILON
        )[0],
    }
    rows = []
    for batch, side, channels, filters in _SIZES_1X1:
        inputs = tf.random.normal([batch, side, side, channels])
        kernel = tf.random.normal([1, 1, channels, filters])
        is_faster = normalized_convolution.is_faster(inputs, kernel, (1, 1))
        values = [inputs, kernel, tf.ones([filters]), tf.zeros([filters])]
        times = compare(ways, values, filters, turns)
        ratio = times["TensorFlow"] / times["in one"]
        chosen = "in one" if is_faster else "products"
        size = (batch, side, channels, filters)
        rows.append((size, times, chosen, {"ratio of both in one": ratio}))
    return rows


def rows_padded(turns: int) -> list[Row]:
    """The third table."""
    import tensorflow as tf

    from hortus.engine.tensorflow import convolutions

    def product(x: Any, kernel: Any) -> Any:
        channels, filters = kernel.shape[2:]
        rows = tf.matmul(tf.reshape(x, [-1, channels]), tf.reshape(kernel, [channels, filters]))
        return tf.reshape(rows, [*x.shape[:3], filters])

    ways = {
        "TensorFlow": lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME"),
        "plain products": product,
        "ours": lambda x, kernel: convolutions.convolution_1x1(x, kernel, (1, 1)),
    }
    rows = []
    for batch, side, channels, filters in _SIZES_PADDED:
        values = [
            tf.random.normal([batch, side, side, channels]),
            tf.random.normal([1, 1, channels, filters]),
        ]
        times = compare(ways, values, filters, turns)
        ratio = times["plain products"] / times["ours"]
        rows.append(((batch, side, channels, filters), times, "ours", {"ratio of ours": ratio}))
    return rows


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=15)
    arguments = parser.parse_args()
    show("3x3 convolutions, ms", rows_3x3(arguments.turns))
    show("1x1 convolutions with batch normalisation, ms", rows_1x1(arguments.turns))
    show("1x1 convolutions, ms", rows_padded(arguments.turns))


if __name__ == "__main__":
    main()
