"""Batch normalisation: the fastest way on each engine, the same numbers on all."""

import math
from typing import Any

import keras
from keras import ops

from hortus.engine import kernels
from hortus.vision.modeling.layers.convolution.conv2d import Conv2D


@keras.saving.register_keras_serializable(package="Hortus")
class BatchNormalization(keras.layers.BatchNormalization):
    """Batch normalisation (Ioffe and Szegedy 2015) over the last axis.

    Weights, arguments and freezing (`trainable = False` also stops the statistics) are those of
    `keras.layers.BatchNormalization`. The moving variance follows the population variance of the
    batch, as in Keras, on every path: TensorFlow's fused kernel, which reports the sample variance,
    is corrected.

    - On TensorFlow one fused kernel does the work. Under several replicas, `synchronized` takes the
      moments over all of them; otherwise each normalises by its own, and the moving statistics
      follow the mean over replicas.
    - On JAX a step sees the batch of all devices, so the moments are always synchronized.

    Args:
        axis: the axis of the channels; -1 only.
        momentum: share of the old value in the moving statistics, 0 to 1.
        epsilon: added to the variance before the division.
        synchronized: take moments over all replicas.
        **kwargs: `center`, `scale`, initializers, regularizers and constraints, as in Keras.
    """

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        synchronized: bool = False,
        **kwargs: Any,
    ):
        if axis != -1:
            raise ValueError(f"only the last axis can hold the channels (axis=-1), got axis={axis}")
        if kwargs.get("renorm"):
            raise ValueError("batch renormalisation is not offered: leave out renorm")
        # Keras would refuse `synchronized` on JAX, where it is a matter of course.
        super().__init__(axis=axis, momentum=momentum, epsilon=epsilon, **kwargs)
        self.synchronized = synchronized

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        channels = (input_shape[-1],)
        # A scope in the path, so that patterns on paths find these variables whatever the layer is
        # called: many configs exclude `batch_normalization` from weight decay. Unlike `add_weight`,
        # `keras.Variable` sees the scope.
        with keras.name_scope("batch_normalization"):
            if self.scale:
                self.gamma = self._variable("gamma", channels)
                self.gamma.regularizer = self.gamma_regularizer
                self.gamma.constraint = self.gamma_constraint
            if self.center:
                self.beta = self._variable("beta", channels)
                self.beta.regularizer = self.beta_regularizer
                self.beta.constraint = self.beta_constraint
            # Without the aggregation each replica would keep statistics of its own.
            self.moving_mean = self._variable(
                "moving_mean", channels, trainable=False, aggregation="mean"
            )
            self.moving_variance = self._variable(
                "moving_variance", channels, trainable=False, aggregation="mean"
            )
        if not self.trainable:
            for weight in self.weights:
                weight.trainable = False
        self.input_spec = keras.layers.InputSpec(ndim=len(input_shape), axes={-1: input_shape[-1]})

    def _variable(self, name: str, shape: tuple[int | None], **kwargs: Any) -> keras.Variable:
        return keras.Variable(
            getattr(self, f"{name}_initializer"),
            shape=shape,
            dtype=self.variable_dtype,
            autocast=False,
            name=name,
            **kwargs,
        )

    def after(self, conv: keras.layers.Layer, inputs: Any, training: bool | None = None) -> Any:
        """`self(conv(inputs))`, in one where that is faster."""
        fused = None
        if (
            training
            and self.trainable
            and isinstance(conv, Conv2D)
            and not self._crosses_replicas()
        ):
            fused = conv.train_normalized(inputs, *self._scale_and_offset(), self.epsilon)
        if fused is None:
            return self(conv(inputs), training=training)
        outputs, mean, variance = fused
        self._follow_batch(mean, variance)
        return outputs

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Normalises (..., channels); with `training`, by the batch's own statistics."""
        gamma, beta = self._scale_and_offset()
        if not (training and self.trainable):
            return self._normalize(inputs, gamma, beta, self.moving_mean, self.moving_variance)
        if self._crosses_replicas():
            mean, variance = self._synchronized_moments(inputs)
            outputs = self._plain(inputs, gamma, beta, mean, variance)
        elif fused := kernels.fused_batch_norm(inputs, gamma, beta, epsilon=self.epsilon):
            outputs, mean, variance = fused
        else:
            mean, variance = self._moments_of_batch(inputs)
            outputs = self._plain(inputs, gamma, beta, mean, variance)
        self._follow_batch(mean, variance)
        return outputs

    def _crosses_replicas(self) -> bool:
        return self.synchronized and kernels.separate_replicas() > 1

    def _scale_and_offset(self) -> tuple[Any, Any]:
        channels = self.moving_mean.shape
        return (
            self.gamma if self.scale else ops.ones(channels, "float32"),
            self.beta if self.center else ops.zeros(channels, "float32"),
        )

    def _normalize(self, inputs: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        fused = kernels.fused_batch_norm(
            inputs, gamma, beta, epsilon=self.epsilon, mean=mean, variance=variance
        )
        return fused[0] if fused else self._plain(inputs, gamma, beta, mean, variance)

    def _plain(self, inputs: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        scale = ops.rsqrt(variance + self.epsilon) * gamma
        outputs = (ops.cast(inputs, scale.dtype) - mean) * scale + beta
        return ops.cast(outputs, self.compute_dtype)

    def _moments_of_batch(self, inputs: Any) -> tuple[Any, Any]:
        # In two passes: on JAX `ops.moments` subtracts squares, which cancel around a large mean.
        inputs = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))
        axes = list(range(len(inputs.shape) - 1))
        mean = ops.mean(inputs, axis=axes)
        return mean, ops.mean(ops.square(inputs - mean), axis=axes)

    def _synchronized_moments(self, inputs: Any) -> tuple[Any, Any]:
        mean, variance = self._moments_of_batch(inputs)
        count = ops.cast(math.prod(ops.shape(inputs)[:-1]), mean.dtype)
        sums = ops.stack([ops.ones_like(mean), mean]) * count
        total, mean_sum = ops.unstack(kernels.sum_over_replicas(sums))
        common = mean_sum / total
        squares = (variance + ops.square(mean - common)) * count
        return common, kernels.sum_over_replicas(squares) / total

    def _follow_batch(self, mean: Any, variance: Any) -> None:
        self._follow(self.moving_mean, mean)
        self._follow(self.moving_variance, variance)

    def _follow(self, moving: keras.Variable, value: Any) -> None:
        value = ops.stop_gradient(ops.cast(value, moving.dtype))
        moving.assign(moving * self.momentum + value * (1.0 - self.momentum))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for name in ("renorm", "renorm_clipping", "renorm_momentum"):
            config.pop(name, None)
        return config
