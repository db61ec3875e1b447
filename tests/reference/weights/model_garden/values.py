"""Values of variables and images by formula, so that figures need no stored weights.

A value depends on the variable's key in the checkpoint, so that no two layers are the same and one
that is loaded into another's place shows.
"""

import zlib

import numpy as np


def value(key, shape):
    """The value of the variable that a checkpoint has under `key`."""
    parts = [part for part in key.split("/") if part not in (".ATTRIBUTES", "VARIABLE_VALUE")]
    average = "average" in parts and ".OPTIMIZER_SLOT" in parts
    leaf = parts[parts.index(".OPTIMIZER_SLOT") - 1] if average else parts[-1]
    count = int(np.prod(shape, dtype=np.int64))
    k = np.arange(count, dtype=np.float64) % 9973 + (zlib.crc32(key.encode()) % 7919) / 7
    if leaf == "moving_variance":
        flat = 1 + 0.5 * np.sin(k) ** 2
    elif leaf == "moving_mean":
        flat = 0.1 * np.cos(2 * k)
    elif leaf == "gamma":
        flat = 1 + 0.2 * np.cos(k)
    elif leaf in ("beta", "bias") or len(shape) < 2:
        flat = 0.1 * np.sin(k + 1)
    else:
        fan = np.prod(shape[:2]) if leaf == "depthwise_kernel" else np.prod(shape[:-1])
        flat = np.sqrt(2 / max(fan, 1)) * np.cos(0.37 * k**2 + k)
    return flat.reshape(shape).astype("float32")


def images(size):
    """Two images, already normalised, (2, size, size, 3)."""
    n, i, j, c = np.meshgrid(*map(np.arange, (2, size, size, 3)), indexing="ij")
    grid = np.cos(0.05 * i * (c + 1) + 0.11 * j + n) + 0.5 * np.sin(0.37 * i - 0.23 * j * (c + 1))
    return grid.astype("float32")
