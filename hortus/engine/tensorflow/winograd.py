"""3x3 convolutions with a quarter of the multiplications, by Winograd's minimal filtering.

F(4 x 4, 3 x 3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015): each
tile of 4 x 4 outputs is linear in 36 products per pair of channels, where the direct way takes 144.
The 6 x 6 inputs of every tile and the kernel are mapped to those 36 numbers, multiplied in 36
matrix products over the channels, and mapped back. The gradient by the inputs is such a convolution
too, by the kernel turned round; that by the kernel consists of the same products, transposed.

Maps are matrix products. What goes to and from tiles are rows of channels, looked up by their
places: the tiles of all images, of several sizes too, make one matrix.

The maps have entries up to 8: the rounding error of float32 is about ten times that of the direct
way, 1e-5 of the largest output.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hortus.engine.tensorflow import cost_model

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
_INPUT_MAPS = np.kron(_INPUT_MAP, _INPUT_MAP)
_KERNEL_MAPS = np.kron(_KERNEL_MAP, _KERNEL_MAP).astype("float32")
_TURNED_KERNEL_MAPS = np.ascontiguousarray(_KERNEL_MAPS[:, ::-1])
"""Of a kernel turned by half a circle."""
_OUTPUT_MAPS = np.kron(_OUTPUT_MAP, _OUTPUT_MAP)
_OUTPUT_MAPS_BACK = np.ascontiguousarray(_OUTPUT_MAPS.T)

_MOST_TILES = 65536
"""Places are constants of the graph, which has to stay small: 272 bytes per tile."""


def convolution(inputs: Sequence[tf.Tensor], kernel: tf.Tensor) -> list[tf.Tensor]:
    """Convolutions of stride 1 with one kernel, whose outputs are as large as their inputs.

    Args:
        inputs: each (batch, height, width, channels) float32, all sizes known.
        kernel: (3, 3, channels, filters) float32.

    Returns:
        For each input, (batch, height, width, filters) float32.
    """
    tiles = _tiles(tuple(tuple(x.shape[:3]) for x in inputs))

    @tf.custom_gradient
    def convolve(kernel: tf.Tensor, *inputs: tf.Tensor) -> Any:
        products = tf.matmul(
            tiles.map(_INPUT_MAPS, tiles.rows(inputs), tiles.inputs),
            _map_kernel(_KERNEL_MAPS, kernel),
        )

        def gradient(*upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            with tf.control_dependencies(upstream):
                # Mapped again, as what was mapped would have taken memory until now.
                weights = _map_kernel(_TURNED_KERNEL_MAPS, tf.identity(kernel))
            slopes = tiles.rows(upstream)
            to_inputs = tf.matmul(
                tiles.map(_INPUT_MAPS, slopes, tiles.inputs), weights, transpose_b=True
            )
            # The next gradient waits for that by the inputs; both at once would take more memory.
            with tf.control_dependencies([to_inputs]):
                again = tiles.rows([tf.identity(x) for x in inputs])
                slopes = tf.identity(slopes)
            to_kernel = tf.matmul(
                tiles.map(_INPUT_MAPS, again, tiles.inputs),
                tiles.map(_OUTPUT_MAPS_BACK, slopes, tiles.outputs),
                transpose_a=True,
            )
            to_kernel = tf.reshape(to_kernel, [_SPAN**2, -1])
            to_kernel = tf.matmul(_KERNEL_MAPS, to_kernel, transpose_a=True)
            return tf.reshape(to_kernel, kernel.shape), *tiles.to_images(to_inputs)

        return tiles.to_images(products), gradient

    return list(convolve(kernel, *inputs))


def is_faster(inputs: Sequence[tf.Tensor], kernel: tf.Tensor) -> bool:
    """Whether `convolution` is, than the direct way.

    Not where a size of the inputs is not known, or too large.
    """
    if any(None in x.shape for x in inputs):
        return False
    sizes = tuple(tuple(x.shape[:3]) for x in inputs)
    tiles = count_tiles(sizes)
    if tiles > _MOST_TILES:
        return False
    return cost_model.is_winograd_faster(sum(map(math.prod, sizes)), tiles, *kernel.shape[2:])


def count_tiles(shapes: Sequence[Sequence[int]]) -> int:
    """How many tiles images of some sizes have; each batch, height, width."""
    return sum(batch * -(-height // _TILE) * -(-width // _TILE) for batch, height, width in shapes)


def _map_kernel(maps: np.ndarray, kernel: tf.Tensor) -> tf.Tensor:
    """(3, 3, channels, filters) to (36, channels, filters)."""
    mapped = tf.matmul(maps, tf.reshape(kernel, [maps.shape[1], -1]))
    return tf.reshape(mapped, [_SPAN**2, *kernel.shape[2:]])


@dataclasses.dataclass(frozen=True)
class _Tiles:
    """The tiles of images of several sizes, and how to come to them and back."""

    shapes: tuple[tuple[int, int, int], ...]
    """Batch, height, width."""

    @property
    def sizes(self) -> list[int]:
        """Positions of each of the sizes."""
        return [batch * height * width for batch, height, width in self.shapes]

    @functools.cached_property
    def count(self) -> int:
        return self.inputs.shape[1]

    @functools.cached_property
    def inputs(self) -> np.ndarray:
        """(36, tiles): the row of each of a tile's inputs."""
        return self._rows_of(_SPAN, start=-1)

    @functools.cached_property
    def outputs(self) -> np.ndarray:
        """(16, tiles): the row of each of a tile's outputs."""
        return self._rows_of(_TILE, start=0)

    @functools.cached_property
    def places(self) -> np.ndarray:
        """For each row, where among all numbers of `outputs` it is."""
        places = np.zeros(sum(self.sizes) + 1, "int32")
        places[self.outputs.reshape(-1)] = np.arange(self.outputs.size)
        return places[:-1]

    def _rows_of(self, span: int, start: int) -> np.ndarray:
        """(span^2, tiles): rows of the positions of squares, the last row for those outside."""
        parts, first, last = [], 0, sum(self.sizes)
        for batch, height, width in self.shapes:
            y, x = (_positions(side, span, start) for side in (height, width))
            places = y[:, None, None, :, None] * width + x[None, :, None, None, :]
            places = places + (np.arange(batch) * height * width + first)[:, None, None]
            is_inside = ((y >= 0) & (y < height))[:, None, None, :, None]
            is_inside = is_inside & ((x >= 0) & (x < width))[None, :, None, None, :]
            parts.append(np.where(is_inside, places, last).reshape(span**2, -1))
            first += batch * height * width
        return np.concatenate(parts, axis=1).astype("int32")

    def rows(self, images: Sequence[tf.Tensor]) -> tf.Tensor:
        """(positions + 1, channels); the last row is 0."""
        channels = images[0].shape[-1]
        rows = [tf.reshape(x, [-1, channels]) for x in images]
        return tf.concat([*rows, tf.zeros([1, channels])], axis=0)

    def map(self, maps: np.ndarray, rows: tf.Tensor, places: np.ndarray) -> tf.Tensor:
        """(36, tiles, channels), of the rows at some places of each tile."""
        found = tf.reshape(tf.gather(rows, places), [len(places), -1])
        return tf.reshape(tf.matmul(maps, found), [_SPAN**2, self.count, rows.shape[-1]])

    def to_images(self, products: tf.Tensor) -> list[tf.Tensor]:
        """From (36, tiles, filters)."""
        filters = products.shape[-1]
        outputs = tf.matmul(_OUTPUT_MAPS, tf.reshape(products, [_SPAN**2, -1]))
        rows = tf.gather(tf.reshape(outputs, [-1, filters]), self.places)
        parts = tf.split(rows, self.sizes) if len(self.sizes) > 1 else [rows]
        return [
            tf.reshape(part, [*shape, filters])
            for part, shape in zip(parts, self.shapes, strict=True)
        ]


_tiles = functools.lru_cache(maxsize=256)(_Tiles)
"""Models have few sizes, and many layers of each."""


def _positions(side: int, span: int, start: int) -> np.ndarray:
    """(span, tiles) along a side."""
    return _TILE * np.arange(-(-side // _TILE)) + np.arange(span)[:, None] + start
