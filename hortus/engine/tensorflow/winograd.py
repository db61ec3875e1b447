"""3x3 convolutions with a quarter of the multiplications, by Winograd's minimal filtering.

F(4 x 4, 3 x 3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015): each
tile of 4 x 4 outputs is linear in 36 products per pair of channels, where the direct way takes 144.
Inputs and kernel are mapped to those 36 numbers, multiplied in 36 matrix products over the
channels, and mapped back. All maps are matrix products too, and the gradients consist of the same
products, transposed, so that they save as much.

The maps have entries up to 8: the rounding error of float32 is about ten times that of the direct
way, 1e-5 of the largest output.
"""

import functools
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


def convolution(inputs: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """The convolution of stride 1 whose outputs are as large as its inputs.

    Args:
        inputs: (batch, height, width, channels) float32, all sizes known.
        kernel: (3, 3, channels, filters) float32.

    Returns:
        (batch, height, width, filters) float32.
    """
    batch, height, width, channels = inputs.shape
    filters = kernel.shape[-1]
    rows, columns = _tiles(height), _tiles(width)

    def map_inputs(x: tf.Tensor) -> tf.Tensor:
        # Padding and the overlap of tiles are part of the two matrices.
        x = tf.matmul(_input_map(height), tf.reshape(x, [batch, height, width * channels]))
        x = tf.matmul(_input_map(width), tf.reshape(x, [batch * _SPAN * rows, width, channels]))
        x = tf.reshape(x, [batch, _SPAN, rows, _SPAN, columns, channels])
        return tf.reshape(tf.transpose(x, [1, 3, 0, 2, 4, 5]), [_SPAN**2, -1, channels])

    def to_inputs(x: tf.Tensor) -> tf.Tensor:
        x = tf.reshape(x, [_SPAN, _SPAN, batch, rows, columns, channels])
        x = tf.reshape(tf.transpose(x, [2, 0, 3, 1, 4, 5]), [-1, _SPAN * columns, channels])
        x = tf.matmul(_input_map(width).T, x)
        x = tf.matmul(_input_map(height).T, tf.reshape(x, [batch, -1, width * channels]))
        return tf.reshape(x, [batch, height, width, channels])

    def map_kernel(weights: tf.Tensor) -> tf.Tensor:
        weights = tf.matmul(_KERNEL_MAPS, tf.reshape(weights, [9, channels * filters]))
        return tf.reshape(weights, [_SPAN**2, channels, filters])

    def to_kernel(weights: tf.Tensor) -> tf.Tensor:
        weights = tf.reshape(weights, [_SPAN**2, channels * filters])
        return tf.reshape(tf.matmul(_KERNEL_MAPS.T, weights), [3, 3, channels, filters])

    def to_outputs(y: tf.Tensor) -> tf.Tensor:
        y = tf.matmul(_OUTPUT_MAPS, tf.reshape(y, [_SPAN**2, -1]))
        y = tf.reshape(y, [_TILE, _TILE, batch, rows, columns, filters])
        y = tf.transpose(y, [2, 3, 0, 4, 1, 5])
        return tf.reshape(y, [batch, _TILE * rows, _TILE * columns, filters])[:, :height, :width]

    def map_outputs(y: tf.Tensor) -> tf.Tensor:
        beyond = [[0, 0], [0, _TILE * rows - height], [0, _TILE * columns - width], [0, 0]]
        y = tf.reshape(tf.pad(y, beyond), [batch, rows, _TILE, columns, _TILE, filters])
        y = tf.reshape(tf.transpose(y, [2, 4, 0, 1, 3, 5]), [_TILE**2, -1])
        return tf.reshape(tf.matmul(_OUTPUT_MAPS.T, y), [_SPAN**2, -1, filters])

    @tf.custom_gradient
    def convolve(inputs: tf.Tensor, kernel: tf.Tensor) -> Any:
        mapped = map_inputs(inputs)
        outputs = to_outputs(tf.matmul(mapped, map_kernel(kernel)))

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            # The mapped kernel is four times as large as the kernel: it is made again, since until
            # now it would have taken memory.
            with tf.control_dependencies([upstream]):
                weights = map_kernel(tf.identity(kernel))
            upstream = map_outputs(upstream)
            return (
                to_inputs(tf.matmul(upstream, weights, transpose_b=True)),
                to_kernel(tf.matmul(mapped, upstream, transpose_a=True)),
            )

        return outputs, gradient

    return convolve(inputs, kernel)


def speed_up(inputs: tf.Tensor, filters: int) -> float:
    """About how many times as fast as the direct way a training step's part is on CPUs.

    Args:
        inputs: of the convolution; 0 is returned where one of its sizes is not known.
        filters: of the convolution.
    """
    if None in inputs.shape:
        return 0.0
    batch, height, width, channels = inputs.shape
    tiles = batch * _tiles(height) * _tiles(width)
    # In multiplications; what mapping a number costs was fitted to measurements on AVX-512, of
    # 4 x 4 to 64 x 64 positions and 64 to 512 channels.
    direct = 9 * batch * height * width * channels * filters
    mapping = tiles * (channels * (90 + 1.7 * max(height, width)) + filters * 90)
    reduced = tiles * channels * filters + mapping + 25 * channels * filters
    return direct / (_SPAN**2 * reduced)


def _tiles(side: int) -> int:
    return -(-side // _TILE)


@functools.cache
def _input_map(side: int) -> np.ndarray:
    """(6 * tiles, side): from inputs along a side to the numbers of tiles, the number first."""
    tiles = _tiles(side)
    padded = np.zeros((_SPAN, tiles, _TILE * tiles + 2), "float32")
    for tile in range(tiles):
        padded[:, tile, _TILE * tile : _TILE * tile + _SPAN] = _INPUT_MAP
    return padded[:, :, 1 : side + 1].reshape(_SPAN * tiles, side)
