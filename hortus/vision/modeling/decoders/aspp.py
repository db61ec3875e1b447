"""Atrous spatial pyramid pooling as a decoder."""

from collections.abc import Sequence
from typing import Any

import keras

from hortus.vision.modeling.decoders import factory
from hortus.vision.modeling.decoders.builder import builder_of
from hortus.vision.modeling.decoders.decoder import Decoder, Specs
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.layers.resampling.spatial_pyramid_pooling import SpatialPyramidPooling


@keras.saving.register_keras_serializable(package="Hortus")
class ASPP(Decoder):
    """The decoder of DeepLab V3 (Chen et al. 2017): features of one level, seen at many scales.

    Args:
        input_specs: shapes of the backbone's features, batch first, by level.
        level: which of them are used.
        dilation_rates: of the 3x3 convolutions, one each.
        num_filters: of every branch and of the output.
        pool_kernel_size: height and width of the pooled window, in pixels of the image; None or
            empty pools all of it.
        dropout_rate: share of the output dropped in training, 0 to 1.
        use_depthwise_convolution: depthwise separable dilated convolutions.
        spp_layer_version: `v2` regularises depthwise kernels too, `v1` does not.
        output_tensor: return the feature map itself instead of {level: map}.
        norm_act: makes normalisation and activations.
        kernel_initializer: of all convolutions.
        kernel_regularizer: of all convolutions, or None.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        input_specs: Specs,
        level: int = 4,
        dilation_rates: Sequence[int] = (),
        num_filters: int = 256,
        pool_kernel_size: Sequence[int] | None = None,
        dropout_rate: float = 0.0,
        use_depthwise_convolution: bool = False,
        spp_layer_version: str = "v1",
        output_tensor: bool = False,
        norm_act: NormAct | None = None,
        kernel_initializer: Any = "VarianceScaling",
        kernel_regularizer: Any = None,
        **kwargs: Any,
    ):
        if spp_layer_version not in ("v1", "v2"):
            raise ValueError(f"spp_layer_version must be 'v1' or 'v2', got {spp_layer_version!r}")
        self._remember_common_arguments(
            input_specs, norm_act, kernel_initializer, kernel_regularizer
        )
        self.level = level
        self.dilation_rates = list(dilation_rates)
        self.num_filters = num_filters
        self.pool_kernel_size = list(pool_kernel_size) if pool_kernel_size else None
        self.dropout_rate = dropout_rate
        self.use_depthwise_convolution = use_depthwise_convolution
        self.spp_layer_version = spp_layer_version
        self.output_tensor = output_tensor

        inputs = self._inputs([level])
        x = SpatialPyramidPooling(
            num_filters,
            self.dilation_rates,
            pool_size=self._pool_size(),
            dropout_rate=dropout_rate,
            use_depthwise_convolution=use_depthwise_convolution,
            regularize_depthwise=spp_layer_version == "v2",
            norm_act=self.norm_act,
            kernel_initializer=kernel_initializer,
            kernel_regularizer=self.kernel_regularizer,
            name="pyramid",
        )(inputs[str(level)])
        super().__init__(inputs=inputs, outputs=x if output_tensor else {str(level): x}, **kwargs)

    def _pool_size(self) -> list[int] | None:
        """The window in pixels of the features."""
        if self.pool_kernel_size is None:
            return None
        return [max(1, side // 2**self.level) for side in self.pool_kernel_size]


build_aspp = factory.register_decoder_builder("aspp")(builder_of(ASPP))
