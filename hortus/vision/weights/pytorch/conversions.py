"""From PyTorch's layout of a tensor to ours."""

import dataclasses

import numpy as np


def kernel(value: np.ndarray) -> np.ndarray:
    """(out, in, height, width) to (height, width, in, out); a linear layer to a 1x1 convolution."""
    if value.ndim == 2:
        return value.T[None, None]
    return value.transpose(2, 3, 1, 0)


def depthwise_kernel(value: np.ndarray) -> np.ndarray:
    """(channels, 1, height, width) to (height, width, channels, 1)."""
    return value.transpose(2, 3, 0, 1)


def dense_kernel(value: np.ndarray) -> np.ndarray:
    """(out, in) to (in, out); a 1x1 convolution to a linear layer."""
    return (value[:, :, 0, 0] if value.ndim == 4 else value).T


@dataclasses.dataclass(frozen=True)
class Third:
    """One of query, key and value, which PyTorch keeps as one, to heads.

    (3 heads size, in) to (in, heads, size), and (3 heads size) to (heads, size).
    """

    index: int
    heads: int

    def __call__(self, value: np.ndarray) -> np.ndarray:
        width = value.shape[0] // 3
        part = value[self.index * width : (self.index + 1) * width]
        part = part.reshape(self.heads, width // self.heads, *value.shape[1:])
        return part if part.ndim == 2 else part.transpose(2, 0, 1)


@dataclasses.dataclass(frozen=True)
class FromHeads:
    """The kernel after attention: (out, heads size) to (heads, size, out)."""

    heads: int

    def __call__(self, value: np.ndarray) -> np.ndarray:
        return value.T.reshape(self.heads, value.shape[1] // self.heads, value.shape[0])


@dataclasses.dataclass(frozen=True)
class Ranked:
    """A vector with axes of length 1 before it."""

    rank: int

    def __call__(self, value: np.ndarray) -> np.ndarray:
        return value.reshape((1,) * (self.rank - 1) + (-1,))
