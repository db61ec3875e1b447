"""NAS-FPN."""

import dataclasses
from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.decoders import factory
from hortus.vision.modeling.decoders.builder import builder_of
from hortus.vision.modeling.decoders.decoder import Decoder, Specs
from hortus.vision.modeling.layers.blocks.block import Block, Shape, build_chain
from hortus.vision.modeling.layers.convolution.biased_convolution import convolution
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.layers.resampling.upsample_like import upsample

_LEVELS = range(3, 8)

# Inside the cell features have this width, whatever `num_filters` is: with another one, every edge
# has a convolution of its own. Weights of earlier models are so, and counts of their parameters.
_INNER_FILTERS = 256

HE_NORMAL_FAN_OUT = keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal")


@dataclasses.dataclass(frozen=True)
class Merge:
    """One node of the searched cell."""

    level: int
    """Of its output."""
    inputs: tuple[int, int]
    """Which two features it combines: 0 to 4 are the inputs of the cell, then come the nodes."""
    attention: bool = False
    """The second input also weighs the channels of the first, instead of only being added."""
    added: tuple[int, ...] = ()
    """Further features that are added, which otherwise would have no use."""


CELL = (
    Merge(4, (1, 3), attention=True),
    Merge(4, (1, 5)),
    Merge(3, (0, 6)),
    Merge(4, (6, 7)),
    Merge(5, (7, 8), attention=True, added=(2,)),
    Merge(7, (6, 9), attention=True, added=(4,)),
    Merge(6, (9, 10), attention=True),
)
"""The cell that was found (Ghiasi et al. 2019, figure 6); its last five nodes are its outputs."""


@keras.saving.register_keras_serializable(package="Hortus")
class PyramidMerge(Block):
    """Combines features of several levels at one level: resampling, sum or attention, convolution.

    Args:
        filters: of the output.
        level: of the output.
        input_levels: of the features, in the order in which they are given.
        attention: see `Merge`.
        use_separable_conv: a depthwise separable instead of a full convolution.
        **kwargs: of `Block`.
    """

    def __init__(
        self,
        filters: int,
        level: int,
        input_levels: tuple[int, ...],
        attention: bool = False,
        use_separable_conv: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.filters = filters
        self.level = level
        self.input_levels = tuple(input_levels)
        self.attention = attention
        self.use_separable_conv = use_separable_conv
        self.resample_convs: list[keras.layers.Layer] = []
        self.resample_norms: list[keras.layers.Layer] = []
        self.conv = self._make_conv(filters, 3, "conv")
        self.norm = self._norm("norm")

    def _make_conv(self, filters: int, kernel_size: int, name: str) -> keras.layers.Layer:
        return convolution(
            filters,
            kernel_size,
            separable=self.use_separable_conv,
            kernel_initializer=self.kernel_initializer,
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape: list[Shape]) -> None:
        *shapes, like = input_shape
        if self.filters != _INNER_FILTERS:
            for index, shape in enumerate(shapes):
                self.resample_convs.append(
                    self._make_conv(_INNER_FILTERS, 1, f"resample{index + 1}")
                )
                self.resample_norms.append(self._norm(f"resample_norm{index + 1}"))
                build_chain(shape, self.resample_convs[-1], self.resample_norms[-1])
        build_chain((*like[:-1], _INNER_FILTERS), self.conv, self.norm)

    def call(self, inputs: list[Any], training: bool | None = None) -> Any:
        """Features, and last a map of `level`, whose size the output (batch, ..., filters) gets."""
        *features, like = inputs
        features = [self._resample(index, x, like, training) for index, x in enumerate(features)]
        first, second, *added = features
        if self.attention:
            first = first * ops.sigmoid(ops.max(second, axis=(1, 2), keepdims=True))
        x = self.norm_act.activate(sum(added, start=first + second))
        return self.norm(self.conv(x), training=training)

    def _resample(self, index: int, x: Any, like: Any, training: bool | None) -> Any:
        if self.resample_convs:
            x = self.resample_norms[index](self.resample_convs[index](x), training=training)
        coarser_by = self.level - self.input_levels[index]
        if coarser_by > 0:
            stride = 2**coarser_by
            return ops.max_pool(x, stride, strides=stride, padding="same")
        return upsample(x, 2**-coarser_by, like) if coarser_by < 0 else x

    def compute_output_shape(self, input_shape: list[Shape]) -> Shape:
        return (*input_shape[-1][:-1], self.filters)


@keras.saving.register_keras_serializable(package="Hortus")
class NASFPN(Decoder):
    """NAS-FPN (Ghiasi et al. 2019): a cell found by architecture search, stacked.

    Args:
        input_specs: shapes of the backbone's features, batch first, by level.
        min_level: finest level of the output, 3.
        max_level: coarsest level of the output, 7.
        num_filters: of every level.
        num_repeats: how often the cell is stacked.
        use_separable_conv: depthwise separable instead of full convolutions.
        norm_act: makes normalisation and activations.
        kernel_initializer: of all convolutions.
        kernel_regularizer: of all convolutions, or None.
        bias_regularizer: of all convolutions, or None.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        input_specs: Specs,
        min_level: int = 3,
        max_level: int = 7,
        num_filters: int = 256,
        num_repeats: int = 5,
        use_separable_conv: bool = False,
        norm_act: NormAct | None = None,
        kernel_initializer: Any = HE_NORMAL_FAN_OUT,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ):
        if (min_level, max_level) != (_LEVELS[0], _LEVELS[-1]):
            raise ValueError(
                f"NAS-FPN was searched for levels {_LEVELS[0]} to {_LEVELS[-1]} and has no others, "
                f"got min_level={min_level}, max_level={max_level}"
            )
        self._remember_common_arguments(
            input_specs, norm_act, kernel_initializer, kernel_regularizer, bias_regularizer
        )
        self.min_level = min_level
        self.max_level = max_level
        self.num_filters = num_filters
        self.num_repeats = num_repeats
        self.use_separable_conv = use_separable_conv

        highest = max(int(level) for level in self.input_specs if level.isdigit())
        inputs = self._inputs(level for level in _LEVELS if level <= highest)
        features = self._entry(inputs, highest)
        for repeat in range(num_repeats):
            features = self._cell(features, name=f"cell{repeat + 1}")
        outputs = {str(level): x for level, x in zip(_LEVELS, features, strict=True)}
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    def _entry(self, inputs: dict[str, Any], highest: int) -> list[Any]:
        """Features of all levels, of the same width."""
        features: list[Any] = []
        for level in _LEVELS:
            if level > highest:
                pool = keras.layers.MaxPooling2D(2, padding="same", name=f"coarser{level}")
                features.append(pool(features[-1]))
                continue
            x = inputs[str(level)]
            if x.shape[-1] != self.num_filters:
                x = convolution(
                    self.num_filters,
                    1,
                    separable=self.use_separable_conv,
                    kernel_initializer=self.kernel_initializer,
                    kernel_regularizer=self.kernel_regularizer,
                    bias_regularizer=self.bias_regularizer,
                    name=f"lateral{level}",
                )(x)
                x = self.norm_act.norm(name=f"lateral_norm{level}")(x)
            features.append(x)
        return features

    def _cell(self, features: list[Any], name: str) -> list[Any]:
        """Features of all levels, from the finest, to new ones."""
        nodes = list(features)
        levels = list(_LEVELS)
        for merge in CELL:
            sources = (*merge.inputs, *merge.added)
            like = features[merge.level - _LEVELS[0]]
            x = PyramidMerge(
                self.num_filters,
                merge.level,
                input_levels=tuple(levels[i] for i in sources),
                attention=merge.attention,
                use_separable_conv=self.use_separable_conv,
                norm_act=self.norm_act,
                kernel_initializer=self.kernel_initializer,
                kernel_regularizer=self.kernel_regularizer,
                bias_regularizer=self.bias_regularizer,
                name=f"{name}_merge{len(nodes) - len(features) + 1}",
            )([*(nodes[i] for i in sources), like])
            nodes.append(x)
            levels.append(merge.level)
        outputs = dict(zip(levels[-len(_LEVELS) :], nodes[-len(_LEVELS) :], strict=True))
        return [outputs[level] for level in _LEVELS]


build_nasfpn = factory.register_decoder_builder("nasfpn")(builder_of(NASFPN))
