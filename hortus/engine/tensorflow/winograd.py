"""3x3 convolutions with a quarter of the multiplications, by Winograd's minimal filtering.

F(4 x 4, 3 x 3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015): each
tile of 4 x 4 outputs is linear in 36 products per pair of channels, where the direct way takes 144.
Inputs and kernel are mapped to those 36 numbers, multiplied in 36 matrix products over the
channels, and mapped back. All maps are matrix products too, and the gradients consist of the same
products, transposed, so that they save as much.

The maps have entries up to 8: the rounding error of float32 is about ten times that of the direct
way, 1e-5 of the largest output.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

_TILE, _SPAN = 4, 6
"""Outputs and inputs along one side of a tile."""

_INPUT_MAP = np.array(
    [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ],
    "float32",
)
_KERNEL_MAP = np.array(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ],
    "float64",
)
_OUTPUT_MAP = np.array(
    [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
    "float32",
)
# Of a tile's two sides at once.
_KERNEL_MAPS = np.kron(_KERNEL_MAP, _KERNEL_MAP).astype("float32")
_OUTPUT_MAPS = np.kron(_OUTPUT_MAP, _OUTPUT_MAP)


def convolution(inputs: Sequence[tf.Tensor], kernel: tf.Tensor) -> list[tf.Tensor]:
    """Convolutions of stride 1 with one kernel, whose outputs are as large as their inputs.

    Args:
        inputs: each (batch, height, width, channels) float32, all sizes known.
        kernel: (3, 3, channels, filters) float32.

    Returns:
        For each input, (batch, height, width, filters) float32.
    """
    channels, filters = kernel.shape[2:]
    grids = [_Grid(x.shape[0], x.shape[1], x.shape[2]) for x in inputs]

    def map_kernel(weights: tf.Tensor) -> tf.Tensor:
        weights = tf.matmul(_KERNEL_MAPS, tf.reshape(weights, [9, channels * filters]))
        return tf.reshape(weights, [_SPAN**2, channels, filters])

    def map_inputs(inputs: Sequence[tf.Tensor]) -> tf.Tensor:
        mapped = [grid.map_inputs(x) for grid, x in zip(grids, inputs, strict=True)]
        return tf.concat(mapped, axis=1)

    @tf.custom_gradient
    def convolve(kernel: tf.Tensor, *inputs: tf.Tensor) -> Any:
        products = tf.matmul(map_inputs(inputs), map_kernel(kernel))
        products = tf.reshape(products, [_SPAN**2, -1])
        parts = tf.split(
            tf.matmul(_OUTPUT_MAPS, products), [grid.tiles * filters for grid in grids], axis=1
        )
        outputs = [grid.to_outputs(part) for grid, part in zip(grids, parts, strict=True)]

        def gradient(*upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            # Mapped again, since the results of the first time would have taken memory until now.
            with tf.control_dependencies(upstream):
                mapped = map_inputs([tf.identity(x) for x in inputs])
                weights = map_kernel(tf.identity(kernel))
            parts = [grid.from_outputs(y) for grid, y in zip(grids, upstream, strict=True)]
            slopes = tf.matmul(_OUTPUT_MAPS, tf.concat(parts, axis=1), transpose_a=True)
            slopes = tf.reshape(slopes, [_SPAN**2, -1, filters])
            to_kernel = tf.matmul(mapped, slopes, transpose_a=True)
            to_kernel = tf.reshape(to_kernel, [_SPAN**2, channels * filters])
            to_inputs = tf.split(
                tf.matmul(slopes, weights, transpose_b=True),
                [grid.tiles for grid in grids],
                axis=1,
            )
            return (
                tf.reshape(tf.matmul(_KERNEL_MAPS, to_kernel, transpose_a=True), kernel.shape),
                *(grid.to_inputs(part) for grid, part in zip(grids, to_inputs, strict=True)),
            )

        return outputs, gradient

    return list(convolve(kernel, *inputs))


@dataclasses.dataclass
class _Grid:
    """The tiles of images, and how to come to them and back."""

    batch: int
    height: int
    width: int

    @property
    def rows(self) -> int:
        return -(-self.height // _TILE)

    @property
    def columns(self) -> int:
        return -(-self.width // _TILE)

    @property
    def tiles(self) -> int:
        return self.batch * self.rows * self.columns

    def map_inputs(self, x: tf.Tensor) -> tf.Tensor:
        """Images to (36, tiles, channels)."""
        channels = x.shape[-1]
        # Padding and the overlap of tiles are part of the two matrices.
        x = tf.reshape(x, [self.batch, self.height, self.width * channels])
        x = tf.reshape(tf.matmul(_input_map(self.height), x), [-1, self.width, channels])
        x = tf.matmul(_input_map(self.width), x)
        x = tf.reshape(x, [self.batch, _SPAN, self.rows, _SPAN, self.columns, channels])
        return tf.reshape(tf.transpose(x, [1, 3, 0, 2, 4, 5]), [_SPAN**2, self.tiles, channels])

    def to_inputs(self, x: tf.Tensor) -> tf.Tensor:
        """The transpose of `map_inputs`."""
        channels = x.shape[-1]
        x = tf.reshape(x, [_SPAN, _SPAN, self.batch, self.rows, self.columns, channels])
        x = tf.transpose(x, [2, 0, 3, 1, 4, 5])
        x = tf.reshape(x, [-1, _SPAN * self.columns, channels])
        x = tf.matmul(_input_map(self.width), x, transpose_a=True)
        x = tf.reshape(x, [self.batch, _SPAN * self.rows, self.width * channels])
        x = tf.matmul(_input_map(self.height), x, transpose_a=True)
        return tf.reshape(x, [self.batch, self.height, self.width, channels])

    def to_outputs(self, y: tf.Tensor) -> tf.Tensor:
        """(16, tiles * filters) to images."""
        y = tf.reshape(y, [_TILE, _TILE, self.batch, self.rows, self.columns, -1])
        y = tf.transpose(y, [2, 3, 0, 4, 1, 5])
        y = tf.reshape(y, [self.batch, _TILE * self.rows, _TILE * self.columns, -1])
        return y[:, : self.height, : self.width]

    def from_outputs(self, y: tf.Tensor) -> tf.Tensor:
        """The transpose of `to_outputs`."""
        below, beside = _TILE * self.rows - self.height, _TILE * self.columns - self.width
        y = tf.pad(y, [[0, 0], [0, below], [0, beside], [0, 0]])
        y = tf.reshape(y, [self.batch, self.rows, _TILE, self.columns, _TILE, -1])
        return tf.reshape(tf.transpose(y, [2, 4, 0, 1, 3, 5]), [_TILE**2, -1])


def speed_up(inputs: Sequence[tf.Tensor], kernel: tf.Tensor) -> float:
    """About how many times as fast as the direct way a training step's part is on CPUs.

    0 where a size of the inputs is not known.
    """
    channels, filters = kernel.shape[2:]
    # In multiplications; what mapping a number costs was fitted to measurements on AVX-512, of
    # 4 x 4 to 64 x 64 positions and 64 to 512 channels.
    direct, reduced = 0.0, 25.0 * channels * filters
    for x in inputs:
        if None in x.shape:
            return 0.0
        grid = _Grid(*x.shape[:3])
        direct += 9 * grid.batch * grid.height * grid.width * channels * filters
        mapping = channels * (90 + 1.7 * max(grid.height, grid.width)) + filters * 90
        reduced += grid.tiles * (channels * filters + mapping)
    return direct / (_SPAN**2 * reduced)


@functools.cache
def _input_map(side: int) -> np.ndarray:
    """(6 * tiles, side): from inputs along a side to the numbers of tiles, the number first."""
    tiles = -(-side // _TILE)
    padded = np.zeros((_SPAN, tiles, _TILE * tiles + 2), "float32")
    for tile in range(tiles):
        padded[:, tile, _TILE * tile : _TILE * tile + _SPAN] = _INPUT_MAP
    return padded[:, :, 1 : side + 1].reshape(_SPAN * tiles, side)
