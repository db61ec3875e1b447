"""A backbone: images to features by level."""

from typing import Any

import keras

from hortus.vision.modeling import backbones
from hortus.vision.modeling.backbones.backbone import IMAGES, FunctionalModel
from hortus.vision.modeling.layers import ConvNormAct, NormAct


@keras.saving.register_keras_serializable(package="Starter")
class PlainNet(FunctionalModel):
    """Two convolutions per level, the first with stride 2.

    Args:
        widths: channels of each level, from level 1 on.
        input_specs: shape of the images, batch first.
        norm_act: makes normalisation and activation.
        kernel_regularizer: of all convolutions, or None.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        widths: list[int],
        input_specs: keras.layers.InputSpec = IMAGES,
        norm_act: NormAct | None = None,
        kernel_regularizer: Any = None,
        **kwargs: Any,
    ):
        # Each argument is kept under its name: that is what the model is saved and rebuilt from.
        self.widths = widths
        self.input_specs = input_specs
        self.norm_act = norm_act or NormAct()
        self.kernel_regularizer = kernel_regularizer
        shared = {"norm_act": self.norm_act, "kernel_regularizer": kernel_regularizer}
        x = inputs = keras.Input(shape=input_specs.shape[1:], name="images")
        features = {}
        for level, width in enumerate(widths, start=1):
            x = ConvNormAct(width, strides=2, name=f"level{level}_down", **shared)(x)
            x = ConvNormAct(width, name=f"level{level}_conv", **shared)(x)
            features[str(level)] = x
        super().__init__(inputs=inputs, outputs=features, **kwargs)

    @property
    def output_specs(self) -> dict[str, tuple[int | None, ...]]:
        """Shapes of the features, batch first, by level."""
        return {level: tuple(x.shape) for level, x in self.output.items()}


@backbones.factory.register_backbone_builder("plain")
def build_plain_net(
    input_specs: keras.layers.InputSpec,
    backbone_config: Any,
    norm_activation_config: Any,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
) -> PlainNet:
    """PlainNet from its config."""
    return PlainNet(
        widths=backbone_config.get().widths,
        input_specs=input_specs,
        norm_act=NormAct.from_config(norm_activation_config),
        kernel_regularizer=l2_regularizer,
    )
