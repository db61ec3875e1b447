"""The base of our backbones: a functional model from images to features by level."""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from hortus.vision.modeling.importing import ImportsWeights
from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.modeling.layers.convolution.conv_norm_act import ConvNormAct
from hortus.vision.modeling.layers.normalization.norm_act import NormAct

IMAGES = keras.layers.InputSpec(shape=(None, None, None, 3))
"""Colour images of any size."""


class FunctionalModel(ImportsWeights, Configurable, keras.Model):
    """A functional model that is rebuilt, with its precision, from its constructor's arguments.

    A subclass puts the graph together in its constructor and ends it with
    `super().__init__(inputs=..., outputs=..., **kwargs)`.
    """

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        config = dict(config)
        with _dtype_policy(config.pop("dtype", None)):
            return super().from_config(config, custom_objects)


class Backbone(FunctionalModel):
    """Maps images (batch, height, width, channels) to a dict of features.

    The keys are levels as strings: '3' is 2^3 times smaller than the image. A user's own backbone
    need not derive from this class: any `keras.Model` with such outputs and `output_specs` will do.
    """

    norm_act: NormAct
    kernel_initializer: Any
    kernel_regularizer: Any
    bias_regularizer: Any
    padding: str = "same"
    """Of strided convolutions, where a backbone offers `symmetric` too."""

    @property
    def output_specs(self) -> dict[str, tuple[int | None, ...]]:
        """Shapes of the features that a decoder may use, batch first, by level."""
        return {level: tuple(self.output[level].shape) for level in self._levels}

    def _finish(
        self,
        inputs: Any,
        endpoints: dict[str, Any],
        levels: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Makes the model; `levels` are the endpoints for decoders, all of them by default."""
        self._levels = tuple(endpoints if levels is None else levels)
        super().__init__(inputs=inputs, outputs=endpoints, **kwargs)

    def _remember_layer_arguments(
        self,
        norm_act: NormAct | None,
        kernel_initializer: Any,
        kernel_regularizer: Any,
        bias_regularizer: Any,
    ) -> None:
        self.norm_act = norm_act or NormAct()
        self.kernel_initializer = kernel_initializer
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)

    def _layer_arguments(self) -> dict[str, Any]:
        """What every block is told."""
        return {
            "norm_act": self.norm_act,
            "kernel_initializer": self.kernel_initializer,
            "kernel_regularizer": self.kernel_regularizer,
            "bias_regularizer": self.bias_regularizer,
            "padding": self.padding,
        }

    def _conv_norm_act(
        self, x: Any, filters: int, kernel_size: int, strides: int, *, name: str
    ) -> Any:
        layer = ConvNormAct(filters, kernel_size, strides, name=name, **self._layer_arguments())
        return layer(x)


def image_input(input_specs: keras.layers.InputSpec) -> Any:
    """The input tensor for images of the given shape, batch first."""
    return keras.Input(shape=input_specs.shape[1:], name="images")


@contextlib.contextmanager
def _dtype_policy(policy: Any) -> Iterator[None]:
    """Makes `policy`, if any, that of all layers made inside."""
    if policy is None:
        yield
        return
    if isinstance(policy, dict):
        policy = keras.dtype_policies.deserialize(policy)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
