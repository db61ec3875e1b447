"""The builder of all decoders whose config has the arguments of their class as fields."""

from collections.abc import Callable
from typing import Any

import keras

from hortus.vision.modeling.config_arguments import field_values, layer_arguments
from hortus.vision.modeling.layers.configurable import argument_names

MODEL_FIELDS = ("min_level", "max_level")
"""Fields of the model's config that decoders of several levels take as arguments."""


def builder_of(cls: type) -> Callable[..., keras.Model]:
    """Makes a builder for `factory.register_decoder_builder`.

        build_fpn = factory.register_decoder_builder("fpn")(builder_of(FPN))

    Args:
        cls: takes `input_specs`, `norm_act`, `kernel_regularizer`, the fields of its config and, if
            it makes several levels, `MODEL_FIELDS`.
    """

    def build(
        input_specs: Any,
        model_config: Any,
        l2_regularizer: keras.regularizers.Regularizer | None = None,
    ) -> keras.Model:
        of_model = [name for name in MODEL_FIELDS if name in argument_names(cls)]
        return cls(
            input_specs=input_specs,
            **{name: getattr(model_config, name) for name in of_model},
            **layer_arguments(
                cls,
                field_values(model_config.decoder.get()),
                model_config.norm_activation,
                l2_regularizer,
            ),
        )

    build.__doc__ = f"Builds {cls.__name__} from the config of a model."
    return build
