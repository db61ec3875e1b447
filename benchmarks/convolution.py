"""Milliseconds of convolutions and their gradients, in TensorFlow's way and in those of hortus.

    python benchmarks/convolution.py [--turns N] [--busy] [--fit] [--figures FILE]

TensorFlow on a CPU. 3x3 convolutions: by TensorFlow's kernels alone; with the gradient by the
kernel as a matrix product; by Winograd's algorithm, with what the cost model expects of it.
1x1 convolutions and the batch normalisation after them: by TensorFlow's kernels; the convolution as
a matrix product; both in one. 1x1 convolutions alone: by TensorFlow's kernels; as plain matrix
products; as those of hortus, which pad rows of unlucky widths. A star stands at the way that layers
take.

`--fit` fits the figures of `hortus.engine.tensorflow.cost_model` to these times, shows them beside
those in use, and writes them to where the cost model reads them, or to the file of `--figures`.
`--busy` counts CPU time instead of the clock's, for a machine that does other work meanwhile.
"""

import argparse
import dataclasses
import functools
import os
import pathlib
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
_SIZES_FEW_CHANNELS = [(16, 32, channels, channels) for channels in (4, 8, 16, 32)]
_SIZES_NARROW = [(16, 8, 1024, filters) for filters in (64, 128, 192, 256, 320, 384, 512)]
_EPSILON = 1e-3
_clock = time.perf_counter

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
    return alternate(
        {way: lambda run=run: run(upstream, *values) for way, run in functions.items()}, turns
    )


def alternate(functions: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """Median milliseconds of functions that take turns, after two turns to warm up."""
    times: dict[str, list[float]] = {way: [] for way in functions}
    for turn in range(turns + 2):
        for way, run in functions.items():
            begin = _clock()
            run()
            if turn > 1:
                times[way].append(1e3 * (_clock() - begin))
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

    from hortus.engine.tensorflow import convolutions, cost_model, winograd

    ways = {
        "TensorFlow": lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME"),
        "products": lambda x, kernel: convolutions.convolution_3x3(x, kernel, (1, 1)),
        "Winograd": lambda x, kernel: winograd.convolution([x], kernel)[0],
    }
    rows = []
    for batch, side, channels, filters in _SIZES_3X3:
        inputs = tf.random.normal([batch, side, side, channels])
        kernel = tf.random.normal([3, 3, channels, filters])
        tiles = winograd.count_tiles([(batch, side, side)])
        expected = cost_model.winograd_speed_up(batch * side**2, tiles, channels, filters)
        chosen = "Winograd" if winograd.is_faster([inputs], kernel) else "TensorFlow"
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

    from hortus.engine import kernels
    from hortus.engine.tensorflow import convolutions, normalized_convolution

    def normalized(convolution: Callable[..., Any]) -> Callable[..., Any]:
        def layer(x: Any, kernel: Any, gamma: Any, beta: Any) -> Any:
            outputs = convolution(x, kernel)
            return kernels.batch_norm(outputs, gamma, beta, epsilon=_EPSILON)[0]

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


def fit(turns: int, rows: list[Row], normalized: list[Row]) -> Any:
    """The figures of the cost model that agree best with times on this machine.

    Args:
        turns: of each measurement.
        rows: of `rows_3x3`.
        normalized: of `rows_1x1`.
    """
    from hortus.engine.tensorflow import cost_model

    tile, kernel = fit_winograd(rows)
    products, outputs = fit_normalization(normalized)
    return dataclasses.replace(
        cost_model.figures(),
        winograd_tile=round(tile, 1),
        winograd_kernel=round(kernel, 1),
        normalization_products=round(products, 1),
        normalization_outputs=round(outputs),
        least_channels=least_channels(turns),
        most_narrow=most_narrow(turns),
    )


def fit_winograd(rows: list[Row]) -> tuple[float, float]:
    """What mapping a number of a tile, and the kernel, cost, in products.

    By the model, direct / ratio / 36 = (tiles + kernel) c f + tile * tiles (c + f): linear in the
    two, each row divided by its left side, so that small sizes count as much as large ones.
    """
    from hortus.engine.tensorflow import winograd

    matrix, right = [], []
    for (batch, side, channels, filters), times, _, _ in rows:
        tiles = winograd.count_tiles([(batch, side, side)])
        direct = 9 * batch * side**2 * channels * filters
        reduced = direct * times["Winograd"] / times["TensorFlow"] / 36
        matrix.append([tiles * (channels + filters) / reduced, channels * filters / reduced])
        right.append(1.0 - tiles * channels * filters / reduced)
    tile, kernel = solve(matrix, right)
    return max(tile, 1.0), max(kernel, 1.0)


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of least absolute residuals, so that a row that went wrong counts little."""
    import numpy as np

    a, b = np.array(matrix), np.array(right)
    a, scale = a / np.abs(a).max(axis=0), np.abs(a).max(axis=0)
    weights = np.ones(len(b))
    for _ in range(50):  # by least squares, with rows weighted by their residuals again and again
        root = np.sqrt(weights)
        found = np.linalg.lstsq(a * root[:, None], b * root, rcond=None)[0]
        weights = 1.0 / np.maximum(np.abs(a @ found - b), 1e-6)
    return [float(x) for x in found / scale]


def fit_normalization(rows: list[Row]) -> tuple[float, float]:
    """Products per normalised output, and outputs per call of the fused way.

    The milliseconds that it gains are a * outputs - b * products - c, by the model.
    """
    from hortus.engine.tensorflow import cost_model

    matrix, right = [], []
    for (batch, side, channels, filters), times, _, _ in rows:
        count = batch * side**2
        products = cost_model.normalized_products(count, channels, filters)
        weight = 1.0 / times["products"]  # small sizes count as much as large ones
        matrix.append([weight * count * filters, -weight * products, -weight])
        right.append(weight * (times["products"] - times["in one"]))
    per_output, per_product, per_call = (max(x, 1e-12) for x in solve(matrix, right))
    return per_output / per_product, per_call / per_output


def least_channels(turns: int) -> int:
    """The fewest channels from which on the products of a 3x3 convolution are faster."""
    import tensorflow as tf

    from hortus.engine.tensorflow import convolutions

    ways = {
        "TensorFlow": lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME"),
        "products": lambda x, kernel: convolutions.convolution_3x3(x, kernel, (1, 1)),
    }
    least = 2 * _SIZES_FEW_CHANNELS[-1][2]
    for batch, side, channels, filters in reversed(_SIZES_FEW_CHANNELS):
        values = [
            tf.random.normal([batch, side, side, channels]),
            tf.random.normal([3, 3, channels, filters]),
        ]
        times = compare(ways, values, filters, turns)
        if times["products"] > times["TensorFlow"]:
            break
        least = channels
    return least


def most_narrow(turns: int) -> int:
    """The most columns of the other factor up to which padded rows gain; 0 if they never do."""
    import tensorflow as tf

    from hortus.engine.tensorflow import cost_model

    @tf.function(autograph=False)
    def product(x: Any, y: Any) -> Any:
        return tf.matmul(x, y, transpose_a=True)

    @tf.function(autograph=False)
    def padded(x: Any, y: Any) -> Any:
        return product(tf.pad(x, [[0, 0], [0, cost_model.figures().padding]]), y)

    most = 0
    for batch, side, channels, filters in _SIZES_NARROW:
        inputs = tf.random.normal([batch * side**2, channels])
        slopes = tf.random.normal([batch * side**2, filters])
        ways = {
            "plain": functools.partial(product, inputs, slopes),
            "padded": functools.partial(padded, inputs, slopes),
        }
        times = alternate(ways, turns)
        if times["padded"] > times["plain"]:
            break
        most = filters
    return most


def show_figures(found: Any) -> None:
    """Prints figures beside those in use."""
    from rich import console, table

    from hortus.engine.tensorflow import cost_model

    shown = table.Table("figure", "in use", "fitted", title="figures of the cost model")
    for name, value in dataclasses.asdict(cost_model.figures()).items():
        shown.add_row(name, str(value), str(getattr(found, name)))
    console.Console(width=120).print(shown)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--busy", action="store_true", help="count CPU time")
    parser.add_argument("--fit", action="store_true", help="fit the cost model and write it")
    parser.add_argument("--figures", type=pathlib.Path, help="the file to write them to")
    arguments = parser.parse_args()
    if arguments.busy:
        global _clock
        _clock = time.process_time
    rows, normalized = rows_3x3(arguments.turns), rows_1x1(arguments.turns)
    show("3x3 convolutions, ms", rows)
    show("1x1 convolutions with batch normalisation, ms", normalized)
    show("1x1 convolutions, ms", rows_padded(arguments.turns))
    if arguments.fit:
        from hortus.engine.tensorflow import cost_model

        found = fit(arguments.turns, rows, normalized)
        show_figures(found)
        path = arguments.figures or cost_model.PATH
        cost_model.write(path, found)
        print(f"written to {path}")


if __name__ == "__main__":
    main()
