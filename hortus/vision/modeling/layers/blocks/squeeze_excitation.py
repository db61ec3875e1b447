"""Squeeze-and-excitation: weighs the channels by what the whole image shows."""

from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.layers import activations
from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.round_filters import make_divisible


@keras.saving.register_keras_serializable(package="Hortus")
class SqueezeExcitation(Block):
    """Squeeze-and-excitation (Hu et al. 2017).

    Args:
        in_filters: the number that `se_ratio` is a share of; the block's input or its own width.
        se_ratio: width of the bottleneck as a share of `in_filters`, above 0 to 1.
        divisible_by: round that width to a multiple of this.
        round_down_protect: rounding never takes away more than a tenth.
        gating_activation: from the excitation to the factor of a channel.
        activation: of the bottleneck; None takes that of `norm_act`.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        in_filters: int,
        se_ratio: float,
        divisible_by: int = 1,
        round_down_protect: bool = True,
        gating_activation: Any = "sigmoid",
        activation: Any = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.in_filters = in_filters
        self.se_ratio = se_ratio
        self.divisible_by = divisible_by
        self.round_down_protect = round_down_protect
        self.gating_activation = gating_activation
        self.activation = activation
        self._gate = activations.get(gating_activation)
        self._activate = activations.get(activation) if activation else self.norm_act.activate
        squeezed = make_divisible(
            max(1, int(in_filters * se_ratio)), divisible_by, round_down_protect=round_down_protect
        )
        self.reduce = self._conv(squeezed, 1, name="reduce", use_bias=True)
        self.expand: keras.layers.Layer = None

    def build(self, input_shape: Shape) -> None:
        self.expand = self._conv(input_shape[-1], 1, name="expand", use_bias=True)
        build_chain((input_shape[0], 1, 1, input_shape[-1]), self.reduce, self.expand)

    def call(self, inputs: Any) -> Any:
        """Scales (batch, height, width, channels) by a factor per example and channel."""
        x = ops.mean(inputs, axis=(1, 2), keepdims=True)
        x = self._activate(self.reduce(x))
        return inputs * self._gate(self.expand(x))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape
