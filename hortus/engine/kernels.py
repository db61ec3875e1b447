"""Kernels and collectives that `keras.ops` does not offer, by backend.

Each function says what it returns where the backend has nothing faster, so that a layer is written
once: it asks here, and otherwise computes with `keras.ops`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras

from hortus.engine import keras_private

_allows_fast_kernels = True


def allow_fast_kernels(allow: bool) -> None:
    """Whether training may compute in faster ways, which round otherwise; it may at first."""
    global _allows_fast_kernels
    _allows_fast_kernels = allow


def convolution_3x3(
    inputs: Sequence[Any], kernel: Any, strides: tuple[int, int]
) -> list[Any] | None:
    """3x3 convolutions with as much padding as they need, fast in training.

    Args:
        inputs: each (batch, height, width, channels).
        kernel: (3, 3, channels, filters), of the same type, for all of them.
        strides: along height and width.

    Returns:
        For each input, (batch, height, width, filters), sizes divided by the strides and rounded
        up; None where the plain way, one after the other, is as fast, or not known to be slower.
    """
    if keras.backend.backend() != "tensorflow" or not _allows_fast_kernels:
        return None
    from hortus.engine.tensorflow import kernels

    return kernels.convolution_3x3(inputs, kernel, strides)


def convolution_1x1(inputs: Any, kernel: Any, strides: tuple[int, int]) -> Any:
    """A 1x1 convolution, fast in training.

    Args:
        inputs: (batch, height, width, channels).
        kernel: (1, 1, channels, filters), of the same type.
        strides: along height and width.

    Returns:
        (batch, height, width, filters), sizes divided by the strides and rounded up; None where
        the plain way is as fast, or not known to be slower.
    """
    if keras.backend.backend() != "tensorflow" or not _allows_fast_kernels:
        return None
    from hortus.engine.tensorflow import kernels

    return kernels.convolution_1x1(inputs, kernel, strides)


def normalized_convolution_1x1(
    inputs: Any, kernel: Any, strides: tuple[int, int], gamma: Any, beta: Any, *, epsilon: float
) -> tuple[Any, Any, Any] | None:
    """A 1x1 convolution and the batch normalisation of its outputs, fast in training.

    Args:
        inputs: (batch, height, width, channels).
        kernel: (1, 1, channels, filters), of the same type.
        strides: along height and width.
        gamma: (filters,) float32 scale.
        beta: (filters,) float32 offset.
        epsilon: added to the variance.

    Returns:
        The normalised outputs, (batch, height, width, filters), and the mean and the (population)
        variance that they were normalised by, which have no gradient; None where one after the
        other is as fast, or not known to be slower.
    """
    if keras.backend.backend() != "tensorflow" or not _allows_fast_kernels:
        return None
    from hortus.engine.tensorflow import kernels

    return kernels.normalized_convolution_1x1(inputs, kernel, strides, gamma, beta, epsilon=epsilon)


def fused_batch_norm(
    inputs: Any,
    gamma: Any,
    beta: Any,
    *,
    epsilon: float,
    mean: Any = None,
    variance: Any = None,
) -> tuple[Any, Any, Any] | None:
    """Batch normalisation over all axes but the last, in one kernel.

    Args:
        inputs: (..., channels), float32, bfloat16 or float16.
        gamma: (channels,) float32 scale.
        beta: (channels,) float32 offset.
        epsilon: added to the variance.
        mean: (channels,) float32; with `variance`, what to normalise by instead of the batch's own.
        variance: (channels,) float32.

    Returns:
        The outputs, like `inputs`, and the mean and the (population) variance they were normalised
        by; None where the backend has no such kernel for these inputs.
    """
    if keras.backend.backend() != "tensorflow":
        return None
    from hortus.engine.tensorflow import kernels

    return kernels.fused_batch_norm(
        inputs, gamma, beta, epsilon=epsilon, mean=mean, variance=variance
    )


def non_max_suppression(
    boxes: Any,
    scores: Any,
    *,
    iou_threshold: float,
    score_threshold: float,
    max_detections: int,
) -> tuple[Any, Any, Any, Any] | None:
    """Non-maximum suppression of all images and classes, in one kernel.

    Args:
        boxes: (batch, n, classes or 1, 4) float32, in pixels.
        scores: (batch, n, classes) float32.
        iou_threshold: boxes that overlap a better one of their class by more are dropped.
        score_threshold: boxes with a score up to this are not looked at.
        max_detections: most boxes per image.

    Returns:
        Boxes (batch, max_detections, 4), classes (batch, max_detections) int32, scores
        (batch, max_detections), best first and padded with 0, and how many they are, (batch,)
        int32; None where the backend has no such kernel.
    """
    if keras.backend.backend() != "tensorflow":
        return None
    from hortus.engine.tensorflow import kernels

    return kernels.non_max_suppression(
        boxes,
        scores,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        max_detections=max_detections,
    )


def layer_norm(inputs: Any, gamma: Any, beta: Any, *, epsilon: float) -> Any:
    """Layer normalisation over the last axis, with its gradient in closed form.

    Args:
        inputs: (..., features); computed with in float32.
        gamma: (features,) float32 scale.
        beta: (features,) float32 offset.
        epsilon: added to the variance.

    Returns:
        float32 outputs like `inputs`; None where the compiler does as well by itself.
    """
    if keras.backend.backend() != "tensorflow":
        return None
    from hortus.engine.tensorflow import kernels

    return kernels.layer_norm(inputs, gamma, beta, epsilon=epsilon)


def in_one_pass(function: Callable, *inputs: Any, **constants: Any) -> Any:
    """A function of single elements, in one pass over memory in training.

    Args:
        function: computes each element of its result from those at the same place of its inputs,
            with `keras.ops`; one that is not made anew for each call.
        *inputs: tensors; those after the first have no gradient.
        **constants: named arguments, hashable.

    Returns:
        `function(*inputs, **constants)`.
    """
    if keras.backend.backend() == "tensorflow" and _allows_fast_kernels:
        from hortus.engine.tensorflow import kernels

        outputs = kernels.in_one_pass(function, inputs, constants)
        if outputs is not None:
            return outputs
    first, *others = inputs
    return function(first, *(keras.ops.stop_gradient(x) for x in others), **constants)


def half_sum_of_squares(inputs: Any) -> Any:
    """Half of the sum of all squares, whose gradient is the inputs.

    Returns:
        A scalar; None where the compiler does as well by itself.
    """
    if keras.backend.backend() != "tensorflow":
        return None
    from hortus.engine.tensorflow import kernels

    return kernels.half_sum_of_squares(inputs)


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
        Whether it did; False where the backend has no such kernel for these values.
    """
    if keras.backend.backend() != "tensorflow":
        return False
    from hortus.engine.tensorflow import kernels

    return kernels.momentum_step(
        variable, velocity, gradient, learning_rate, momentum=momentum, nesterov=nesterov
    )


def add_number(variable: Any, amount: Any) -> None:
    """Adds to a variable that holds a number, in one operation where Keras takes three."""
    amount = keras.ops.cast(amount, variable.dtype)
    if keras.backend.backend() == "tensorflow" and keras_private.stateless_scope() is None:
        from hortus.engine.tensorflow import kernels

        if kernels.add_number(variable.value, amount):
            return
    variable.assign_add(amount)


def separate_replicas() -> int:
    """Over how many replicas, each seeing its own part of the batch, the caller is being run.

    1 on JAX, where a compiled step sees the whole batch however it is split over devices.
    """
    if keras.backend.backend() != "tensorflow":
        return 1
    from hortus.engine.tensorflow import kernels

    return kernels.separate_replicas()


def sum_over_replicas(value: Any) -> Any:
    """Adds up `value` over the replicas of `separate_replicas`; differentiable."""
    if keras.backend.backend() != "tensorflow":
        return value
    from hortus.engine.tensorflow import kernels

    return kernels.sum_over_replicas(value)
