"""The blocks of RevNet: what goes in can be computed from what comes out."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain


@keras.saving.register_keras_serializable(package="Hortus")
class ResidualInner(Block):
    """The convolutions of a residual block without its shortcut and without a last normalisation.

    Two 3x3 convolutions, or, as a bottleneck, a 1x1, a 3x3 and a 1x1 one, with normalisation and
    activation in between.

    Args:
        filters: of the output, or a quarter of them in a bottleneck.
        strides: of the first convolution.
        use_bottleneck: the second form.
        norm_first: normalise and activate the input too.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        filters: int,
        strides: int = 1,
        use_bottleneck: bool = False,
        norm_first: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.filters = filters
        self.strides = strides
        self.use_bottleneck = use_bottleneck
        self.norm_first = norm_first
        kernels = [(1, filters), (3, filters), (1, 4 * filters)]
        if not use_bottleneck:
            kernels = [(3, filters), (3, filters)]
        self.convs = []
        self.norms = [self._norm("norm1")] if norm_first else []
        for index, (size, width) in enumerate(kernels, 1):
            first = index == 1
            self.convs.append(
                self._conv(width, size, strides=strides if first else 1, name=f"conv{index}")
            )
            if not first:
                self.norms.append(self._norm(f"norm{index}"))

    def _chain(self) -> list[keras.layers.Layer]:
        """Normalisations and convolutions in turn."""
        convs, norms = list(self.convs), list(self.norms)
        chain = [] if self.norm_first else [convs.pop(0)]
        for norm, conv in zip(norms, convs, strict=True):
            chain += [norm, conv]
        return chain

    def build(self, input_shape: Shape) -> None:
        build_chain(input_shape, *self._chain())

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, channels) to (batch, height / strides, ..., output filters)."""
        x = inputs
        for layer in self._chain():
            if layer in self.norms:
                x = self.norm_act.activate(layer(x, training=training))
            else:
                x = layer(x)
        return x

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return build_chain(input_shape, *self._chain())


@keras.saving.register_keras_serializable(package="Hortus")
class ReversibleBlock(Block):
    """Two halves of the channels, each changed by what the other shows (Gomez et al. 2017).

    With the halves x1 and x2 of the input, those of the output are y1 = x1 + f(x2) and
    y2 = x2 + g(y1). Where the shape changes, which cannot be reversed, x1 and x2 are pooled by
    their mean and filled up with channels of zeros on both sides.

    Args:
        filters: of each half of the output, or a quarter of them in a bottleneck.
        strides: of the block.
        use_bottleneck: f and g are bottlenecks.
        norm_first: f and g normalise and activate their input.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        filters: int,
        strides: int = 1,
        use_bottleneck: bool = False,
        norm_first: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.filters = filters
        self.strides = strides
        self.use_bottleneck = use_bottleneck
        self.norm_first = norm_first
        self.f = self._inner(strides, name="f")
        self.g = self._inner(1, name="g")

    def _inner(self, strides: int, name: str) -> ResidualInner:
        return ResidualInner(
            self.filters,
            strides,
            self.use_bottleneck,
            self.norm_first,
            norm_act=self.norm_act,
            kernel_initializer=self.kernel_initializer,
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape: Shape) -> None:
        half = (*input_shape[:-1], input_shape[-1] // 2)
        build_chain(half, self.f, self.g)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """(batch, height, width, channels) to (batch, height / strides, ..., twice the width)."""
        x1, x2 = ops.split(inputs, 2, axis=-1)
        y1 = self._shortcut(x1) + self.f(x2, training=training)
        y2 = self._shortcut(x2) + self.g(y1, training=training)
        return ops.concatenate([y1, y2], axis=-1)

    def _shortcut(self, x: Any) -> Any:
        if self.strides > 1:
            x = ops.average_pool(x, self.strides, self.strides, padding="same")
        missing = self.filters * (4 if self.use_bottleneck else 1) - x.shape[-1]
        if missing:
            x = ops.pad(x, [[0, 0], [0, 0], [0, 0], [missing // 2, missing - missing // 2]])
        return x

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        half = self.f.compute_output_shape((*input_shape[:-1], input_shape[-1] // 2))
        return (*half[:-1], 2 * half[-1])
