"""Builds decoders from configs."""

from collections.abc import Callable, Mapping
from typing import Any

import keras

from hortus import registry

Builder = Callable[..., keras.Model | None]

_BUILDERS = registry.Registry("decoder", "hortus.vision.modeling.decoders")


def register_decoder_builder(key: str) -> Callable[[Builder], Builder]:
    """Decorates the function that builds a decoder, and makes it the decoder of type `key`.

        @factory.register_decoder_builder("my_decoder")
        def build_my_decoder(input_specs, model_config, l2_regularizer=None):
            config = model_config.decoder.get()
            return MyDecoder(config.width, input_specs, kernel_regularizer=l2_regularizer)

    The builder receives:
        input_specs: `output_specs` of the backbone: the shapes of its features, batch first, by
            level as a string ('3' is 2^3 times smaller than the image). Height and width may be
            None.
        model_config: the config of the whole model, with `decoder`, whose `type` is `key` and whose
            `get()` is the sub-config of the same name, `norm_activation`, and, for decoders of
            several levels, `min_level` and `max_level`. Yours joins by subclassing `Decoder` with
            one more field.
        l2_regularizer: what to regularise kernels with, or None.

    It returns a `keras.Model` that maps the dict of backbone features to a dict of features by
    level as a string, and that has `output_specs`: the shapes of those features, batch first, by
    the same keys. All its variables exist. None stands for no decoder: the heads then see the
    backbone's features.

    Args:
        key: the value of `decoder.type` in configs.
    """
    return registry.register(_BUILDERS, key)


def build_decoder(
    input_specs: Mapping[str, Any],
    model_config: Any,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
) -> keras.Model | None:
    """Builds the decoder that a config chooses.

    Args:
        input_specs: shapes of the backbone's features, batch first, by level.
        model_config: a config with `decoder`, a `Decoder` config or a subclass of it.
        l2_regularizer: of the kernels, or None.

    Returns:
        A model from features to features by level, with `output_specs`; None for type `identity`.

    Raises:
        RegistryError: no builder has the key `model_config.decoder.type`.
    """
    build = registry.lookup(_BUILDERS, model_config.decoder.type)
    return build(input_specs=input_specs, model_config=model_config, l2_regularizer=l2_regularizer)


def registered_decoders() -> list[str]:
    """All values that `decoder.type` can have: ours, of every module here, and those of others."""
    _BUILDERS.load()
    return sorted(_BUILDERS)
