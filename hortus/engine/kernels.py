"""Functions for layers, written with `keras.ops`, that a backend may compute faster.

The faster ways are in the folders of the backends. `hortus.engine.dispatch` tells how they are
registered and when they are taken.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from hortus.engine.dispatch import Setting, dispatched

FAST_KERNELS = Setting("fast_kernels")
"""The setting `runtime.fast_kernels`. `FAST_KERNELS.governs` lists the functions whose faster ways
round differently; `with FAST_KERNELS.scope(False)` does without them."""


@dispatched(FAST_KERNELS)
def convolution_3x3(inputs: Sequence[Any], kernel: Any, strides: tuple[int, int]) -> list[Any]:
    """3x3 convolutions by one kernel, with as much padding as they need; for training.

    Args:
        inputs: each (batch, height, width, channels).
        kernel: (3, 3, channels, filters), of the same type, for all of them.
        strides: along height and width.

    Returns:
        For each input, (batch, height, width, filters), sizes divided by the strides and rounded
        up.
    """
    return [_convolution(x, kernel, strides) for x in inputs]


@dispatched(FAST_KERNELS)
def convolution_1x1(inputs: Any, kernel: Any, strides: tuple[int, int]) -> Any:
    """A 1x1 convolution, for training.

    Args:
        inputs: (batch, height, width, channels).
        kernel: (1, 1, channels, filters), of the same type.
        strides: along height and width.

    Returns:
        (batch, height, width, filters), sizes divided by the strides and rounded up.
    """
    return _convolution(inputs, kernel, strides)


def _convolution(inputs: Any, kernel: Any, strides: tuple[int, int]) -> Any:
    return ops.conv(inputs, kernel, strides, padding="same", data_format="channels_last")


@dispatched(FAST_KERNELS)
def normalized_convolution_1x1(
    inputs: Any, kernel: Any, strides: tuple[int, int], gamma: Any, beta: Any, *, epsilon: float
) -> tuple[Any, Any, Any]:
    """A 1x1 convolution and the batch normalisation of its outputs, for training.

    Args:
        inputs: (batch, height, width, channels).
        kernel: (1, 1, channels, filters), of the same type.
        strides: along height and width.
        gamma: (filters,) float32 scale.
        beta: (filters,) float32 offset.
        epsilon: added to the variance.

    Returns:
        The normalised outputs, (batch, height, width, filters), and the mean and the (population)
        variance that they were normalised by, which need not have a gradient.
    """
    return batch_norm(convolution_1x1(inputs, kernel, strides), gamma, beta, epsilon=epsilon)


@dispatched()
def batch_norm(
    inputs: Any,
    gamma: Any,
    beta: Any,
    *,
    epsilon: float,
    mean: Any = None,
    variance: Any = None,
) -> tuple[Any, Any, Any]:
    """Batch normalisation over all axes but the last.

    Args:
        inputs: (..., channels).
        gamma: (channels,) float32 scale.
        beta: (channels,) float32 offset.
        epsilon: added to the variance.
        mean: (channels,) float32; with `variance`, what to normalise by instead of the batch's own.
            Faster ways give it no gradient.
        variance: (channels,) float32.

    Returns:
        The outputs, like `inputs`, and the mean and the (population) variance they were normalised
        by.
    """
    given = keras.backend.standardize_dtype(inputs.dtype)
    inputs = ops.cast(inputs, keras.backend.result_type(given, "float32"))
    if mean is None:
        mean, variance = moments(inputs)
    outputs = (inputs - mean) * (ops.rsqrt(variance + epsilon) * gamma) + beta
    if keras.backend.is_float_dtype(given):
        outputs = ops.cast(outputs, given)
    return outputs, mean, variance


def moments(inputs: Any) -> tuple[Any, Any]:
    """Mean and population variance over all axes but the last, in float32 at least."""
    # In two passes: on JAX `ops.moments` subtracts squares, which cancel around a large mean.
    inputs = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))
    axes = list(range(len(inputs.shape) - 1))
    mean = ops.mean(inputs, axis=axes)
    return mean, ops.mean(ops.square(inputs - mean), axis=axes)


@dispatched()
def layer_norm(inputs: Any, gamma: Any, beta: Any, *, epsilon: float) -> Any:
    """Layer normalisation over the last axis.

    Args:
        inputs: (..., features); computed with in float32.
        gamma: (features,) float32 scale.
        beta: (features,) float32 offset.
        epsilon: added to the variance.

    Returns:
        float32 outputs like `inputs`.
    """
    inputs = ops.cast(inputs, "float32")
    centred = inputs - ops.mean(inputs, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
    return centred * ops.rsqrt(variance + epsilon) * gamma + beta


@dispatched(FAST_KERNELS)
def in_one_pass(function: Callable, *inputs: Any, **constants: Any) -> Any:
    """A function of single elements; in training, in one pass over memory.

    Args:
        function: computes each element of its result from those at the same place of its inputs,
            with `keras.ops`; one that is not made anew for each call.
        *inputs: tensors; those after the first have no gradient.
        **constants: named arguments, hashable.

    Returns:
        `function(*inputs, **constants)`.
    """
    first, *others = inputs
    return function(first, *(ops.stop_gradient(x) for x in others), **constants)


@dispatched()
def half_sum_of_squares(inputs: Any) -> Any:
    """Half of the sum of all squares, a scalar, whose gradient is the inputs."""
    return 0.5 * ops.sum(ops.square(inputs))


@dispatched()
def non_max_suppression(
    boxes: Any,
    scores: Any,
    *,
    iou_threshold: float,
    score_threshold: float,
    max_detections: int,
) -> tuple[Any, Any, Any, Any] | None:
    """Non-maximum suppression of all images and classes; a `Kernel` of `hortus.vision.ops.nms`.

    Args:
        boxes: (batch, n, classes or 1, 4) float32, in pixels.
        scores: (batch, n, classes) float32.
        iou_threshold: boxes that overlap a better one of their class by more are dropped.
        score_threshold: boxes with a score up to this are not looked at.
        max_detections: most boxes per image.

    Returns:
        Boxes (batch, max_detections, 4), classes (batch, max_detections) int32, scores
        (batch, max_detections), best first and padded with 0, and how many they are, (batch,)
        int32; None where the backend has no such kernel: `nms` knows the plain way.
    """
    return None


@dispatched()
def momentum_step(
    variable: Any,
    velocity: Any,
    gradient: Any,
    learning_rate: Any,
    *,
    momentum: float,
    nesterov: bool,
) -> bool:
    """Updates a variable by gradient descent with momentum, in one kernel.

    Args:
        variable: what to update, as Keras hands it to `Optimizer.update_step`.
        velocity: its momentum, updated too.
        gradient: of the loss.
        learning_rate: a scalar.
        momentum: share of the velocity that stays.
        nesterov: whether the step looks ahead.

    Returns:
        Whether it did; False where the backend has no such kernel: optimizers know the plain way.
    """
    return False


@dispatched()
def add_number(variable: Any, amount: Any) -> Any:
    """Adds to a variable of Keras that holds a number."""
    variable.assign_add(ops.cast(amount, variable.dtype))
