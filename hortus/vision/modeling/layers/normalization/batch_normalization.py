"""Batch normalisation: the fastest way on each engine, the same numbers on all."""

import math
from typing import Any

import keras
from keras import ops

from hortus.engine import collectives, kernels


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

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Normalises (..., channels); with `training`, by the batch's own statistics."""
        gamma, beta = self.scale_and_offset()
        if not (training and self.trainable):
            outputs, *_ = kernels.batch_norm(
                inputs,
                gamma,
                beta,
                epsilon=self.epsilon,
                mean=self.moving_mean,
                variance=self.moving_variance,
            )
        elif self.crosses_replicas():
            mean, variance = self._synchronized_moments(inputs)
            # Plainly, as these moments have a gradient.
            outputs, *_ = kernels.batch_norm.plain(
                inputs, gamma, beta, epsilon=self.epsilon, mean=mean, variance=variance
            )
            self.follow_batch(mean, variance)
        else:
            outputs, mean, variance = kernels.batch_norm(inputs, gamma, beta, epsilon=self.epsilon)
            self.follow_batch(mean, variance)
        return ops.cast(outputs, self.compute_dtype)

    def crosses_replicas(self) -> bool:
        """Whether the moments are those of several replicas."""
        return self.synchronized and collectives.separate_replicas() > 1

    def scale_and_offset(self) -> tuple[Any, Any]:
        """Gamma and beta, or what stands for them."""
        channels = self.moving_mean.shape
        return (
            self.gamma if self.scale else ops.ones(channels, "float32"),
            self.beta if self.center else ops.zeros(channels, "float32"),
        )

    def follow_batch(self, mean: Any, variance: Any) -> None:
        """Moves the moving statistics towards those of a batch."""
        self._follow(self.moving_mean, mean)
        self._follow(self.moving_variance, variance)

    def _synchronized_moments(self, inputs: Any) -> tuple[Any, Any]:
        mean, variance = kernels.moments(inputs)
        count = ops.cast(math.prod(ops.shape(inputs)[:-1]), mean.dtype)
        sums = ops.stack([ops.ones_like(mean), mean]) * count
        total, mean_sum = ops.unstack(collectives.sum_over_replicas(sums))
        common = mean_sum / total
        squares = (variance + ops.square(mean - common)) * count
        return common, collectives.sum_over_replicas(squares) / total

    def _follow(self, moving: keras.Variable, value: Any) -> None:
        value = ops.stop_gradient(ops.cast(value, moving.dtype))
        moving.assign(moving * self.momentum + value * (1.0 - self.momentum))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for name in ("renorm", "renorm_clipping", "renorm_momentum"):
            config.pop(name, None)
        return config
