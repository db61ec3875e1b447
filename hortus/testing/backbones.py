"""What every backbone must do, checked in one place."""

import keras
import numpy as np


def set_known_weights(model: keras.Model) -> None:
    """Gives each weight values that depend on its shape and the last part of its name only.

    With them, two implementations of a network can be compared by their outputs.
    """
    for weight in model.weights:
        weight.assign(_known_values(weight.name, tuple(weight.shape)))


def _known_values(name: str, shape: tuple[int, ...]) -> np.ndarray:
    k = np.arange(int(np.prod(shape)), dtype="float64") % 9973
    if name == "gamma":
        values = 1 + 0.1 * np.cos(k)
    elif name == "beta":
        values = 0.1 * np.sin(k + 1)
    elif name == "moving_mean":
        values = 0.1 * np.cos(2 * k)
    elif name == "moving_variance":
        values = 1 + 0.5 * np.sin(k) ** 2
    elif "bias" in name:
        values = 0.01 * np.cos(k)
    elif "kernel" in name or len(shape) >= 2:
        depthwise = len(shape) == 4 and shape[-1] == 1
        fan = np.prod(shape[:2] if depthwise else shape[:-1])
        values = np.sqrt(2 / fan) * np.sqrt(2) * np.cos(0.37 * k**2 + k)
    else:
        values = 0.1 * np.cos(k)
    return values.reshape(shape).astype("float32")
