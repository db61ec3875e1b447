"""Chooses the fastest way to compute something on a CPU, from a few figures.

All figures are in `cost_figures.json`, beside this file. `benchmarks/convolution.py --fit` measures
them on the machine at hand and writes them there. All ways compute the same thing, so a wrong
figure costs time and nothing else.
"""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Sequence

PATH = pathlib.Path(__file__).with_name("cost_figures.json")


@dataclasses.dataclass(frozen=True)
class Figures:
    """What the choices depend on. A product is one multiplication of two numbers."""

    winograd_tile: float
    """Products that take as long as mapping one number into a tile and back, in a whole step."""
    winograd_kernel: float
    """Tiles whose products take as long as mapping the kernel."""
    winograd_least_gain: float
    """How many times as fast as the direct way Winograd's has to be, since it takes more memory."""
    least_channels: int
    """Fewest channels for which the kernel's gradient of a 3x3 convolution is faster as a matrix
    product."""
    most_window_bytes: int
    """Most memory that its ninefold copies of the inputs may take. Chosen, not measured."""
    normalization_products: float
    """Products that take as long as normalising one number of the outputs."""
    normalization_outputs: float
    """Numbers that could be normalised while the many small operations of the fused way start."""
    unlucky_width: int
    """Rows whose length is a multiple of this compete for the same lines of the cache. It follows
    from 4096 bytes, the stride at which a first-level cache repeats."""
    most_narrow: int
    """Most columns of the other factor for which padding such rows pays."""
    padding: int
    """Columns to pad with: one line of the cache, 64 bytes."""


@functools.cache
def figures() -> Figures:
    """Those of `cost_figures.json`."""
    return read(PATH)


def read(path: pathlib.Path) -> Figures:
    """Reads figures that `write` wrote.

    Raises:
        ValueError: there are not exactly the figures of `Figures`.
    """
    found = json.loads(path.read_text("utf-8"))
    expected = {field.name for field in dataclasses.fields(Figures)}
    if set(found) != expected:
        raise ValueError(
            f"{path} must hold the figures {sorted(expected)}, but has {sorted(found)}: write it "
            "with `python benchmarks/convolution.py --fit`"
        )
    return Figures(**found)


def write(path: pathlib.Path, found: Figures) -> None:
    """Writes figures as JSON, one per line."""
    path.write_text(json.dumps(dataclasses.asdict(found), indent=2) + "\n", "utf-8")


def winograd_speed_up(
    positions: int, tiles: int, channels: int, filters: int, by: Figures | None = None
) -> float:
    """About how many times as fast as the direct way Winograd's algorithm trains.

    Args:
        positions: of all images.
        tiles: of 4 x 4 positions, which they are cut into.
        channels: of the inputs.
        filters: of the outputs.
        by: other figures than those of this machine.
    """
    by = by or figures()
    direct = 9 * positions * channels * filters
    reduced = (tiles + by.winograd_kernel) * channels * filters
    reduced += by.winograd_tile * tiles * (channels + filters)
    return direct / (36 * reduced)


def is_winograd_faster(positions: int, tiles: int, channels: int, filters: int) -> bool:
    """Whether Winograd's algorithm is worth its memory; arguments of `winograd_speed_up`."""
    gain = winograd_speed_up(positions, tiles, channels, filters)
    return gain >= figures().winograd_least_gain


def is_3x3_product_faster(outputs: int, channels: int, filters: int, bytes_each: int) -> bool:
    """Whether the kernel's gradient of a 3x3 convolution is faster as a matrix product.

    Args:
        outputs: positions of all images of the outputs.
        channels: of the inputs.
        filters: of the outputs.
        bytes_each: of a number.
    """
    if min(channels, filters) < figures().least_channels:
        return False
    return outputs * 9 * channels * bytes_each <= figures().most_window_bytes


def is_normalized_faster(outputs: int, channels: int, filters: int) -> bool:
    """Whether a 1x1 convolution and its batch normalisation are faster as one.

    Args:
        outputs: positions of all images of the outputs.
        channels: of the inputs.
        filters: of the outputs.
    """
    by = figures()
    cost = normalized_products(outputs, channels, filters) / by.normalization_products
    return outputs * filters > cost + by.normalization_outputs


def normalized_products(outputs: int, channels: int, filters: int) -> int:
    """Products that the covariances of the inputs take; arguments of `is_normalized_faster`."""
    return channels**2 * (outputs + filters)


def padding(shape: Sequence[int], other_width: int) -> int:
    """Columns to pad a factor of a sum of products with.

    Args:
        shape: of the factor, rows and columns.
        other_width: columns of the other factor.
    """
    by = figures()
    return 0 if shape[1] % by.unlucky_width or other_width > by.most_narrow else by.padding
