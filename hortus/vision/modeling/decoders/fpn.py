"""Feature pyramid network."""

from typing import Any

import keras

from hortus.vision.modeling.decoders import factory
from hortus.vision.modeling.decoders.builder import builder_of
from hortus.vision.modeling.decoders.decoder import Decoder, Specs
from hortus.vision.modeling.layers.convolution.biased_convolution import convolution
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.layers.resampling.upsample_like import UpsampleLike

_FUSIONS = {"sum": keras.layers.Add, "concat": keras.layers.Concatenate}


@keras.saving.register_keras_serializable(package="Hortus")
class FPN(Decoder):
    """Feature pyramid network (Lin et al. 2016).

    From the coarsest level of the backbone down, each level is joined by the one above. Levels
    coarser than those of the backbone are made by convolutions of stride 2.

    Args:
        input_specs: shapes of the backbone's features, batch first, by level.
        min_level: finest level of the output.
        max_level: coarsest level of the output.
        num_filters: of every level.
        fusion_type: how a coarse level joins the next finer one: `sum` or `concat`.
        use_separable_conv: depthwise separable instead of full convolutions. Their kernels are not
            regularised, and are initialised as Keras does by itself.
        norm_act: makes normalisation and activations.
        kernel_initializer: of full convolutions.
        kernel_regularizer: of full convolutions, or None.
        bias_regularizer: of all convolutions, or None.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        input_specs: Specs,
        min_level: int = 3,
        max_level: int = 7,
        num_filters: int = 256,
        fusion_type: str = "sum",
        use_separable_conv: bool = False,
        norm_act: NormAct | None = None,
        kernel_initializer: Any = "VarianceScaling",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ):
        if fusion_type not in _FUSIONS:
            raise ValueError(f"fusion_type must be one of {list(_FUSIONS)}, got {fusion_type!r}")
        self._remember_common_arguments(
            input_specs, norm_act, kernel_initializer, kernel_regularizer, bias_regularizer
        )
        self.min_level = min_level
        self.max_level = max_level
        self.num_filters = num_filters
        self.fusion_type = fusion_type
        self.use_separable_conv = use_separable_conv

        highest = max(int(level) for level in self.input_specs if level.isdigit())
        last = min(highest, max_level)
        inputs = self._inputs(range(min_level, last + 1))
        merged = self._top_down(inputs, last)
        features = {}
        for level in range(min_level, last + 1):
            features[level] = self._conv(3, f"output{level}")(merged[level])
        for level in range(last + 1, max_level + 1):
            x = features[level - 1]
            if level > last + 1:
                x = self.norm_act.activation(name=f"activation{level - 1}")(x)
            features[level] = self._conv(3, f"coarser{level}", strides=2)(x)
        outputs = {
            str(level): self.norm_act.norm(name=f"norm{level}")(x) for level, x in features.items()
        }
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    def _top_down(self, inputs: dict[str, Any], last: int) -> dict[int, Any]:
        """Each level of the inputs, joined by all coarser ones."""
        merged = {last: self._conv(1, f"lateral{last}")(inputs[str(last)])}
        for level in range(last - 1, self.min_level - 1, -1):
            lateral = self._conv(1, f"lateral{level}")(inputs[str(level)])
            coarser = UpsampleLike(2, name=f"upsample{level + 1}")(merged[level + 1], lateral)
            fusion = _FUSIONS[self.fusion_type](name=f"fusion{level}")
            merged[level] = fusion([coarser, lateral])
        return merged

    def _conv(self, kernel_size: int, name: str, strides: int = 1) -> keras.layers.Layer:
        kernels = (
            {}
            if self.use_separable_conv
            else {
                "kernel_initializer": self.kernel_initializer,
                "kernel_regularizer": self.kernel_regularizer,
            }
        )
        return convolution(
            self.num_filters,
            kernel_size,
            separable=self.use_separable_conv,
            strides=strides,
            bias_regularizer=self.bias_regularizer,
            name=name,
            **kernels,
        )


build_fpn = factory.register_decoder_builder("fpn")(builder_of(FPN))
