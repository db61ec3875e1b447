"""The builder of all backbones whose config has the arguments of their class as fields."""

from collections.abc import Callable
from typing import Any

import keras

from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.configs import common
from hortus.vision.modeling.config_arguments import field_values, layer_arguments


def builder_of(
    cls: type,
    fields: Callable[[Any], dict[str, Any]] = field_values,
) -> Callable[..., keras.Model]:
    """Makes a builder for `factory.register_backbone_builder`.

        build_resnet = factory.register_backbone_builder("resnet")(builder_of(ResNet))

    Args:
        cls: takes `input_specs`, `kernel_regularizer`, `norm_act` if it normalises batches, and the
            fields of its config.
        fields: what the class takes of its config, where that is not just all of its fields.
    """

    def build(
        input_specs: keras.layers.InputSpec,
        backbone_config: backbone_configs.Backbone,
        norm_activation_config: common.NormActivation,
        l2_regularizer: keras.regularizers.Regularizer | None = None,
    ) -> keras.Model:
        arguments = layer_arguments(
            cls, fields(backbone_config.get()), norm_activation_config, l2_regularizer
        )
        return cls(input_specs=input_specs, **arguments)

    build.__doc__ = f"Builds a {cls.__name__} from its config."
    return build
