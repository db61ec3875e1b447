"""Builds backbones from configs."""

from collections.abc import Callable
from typing import Any

import keras

from hortus import registry

Builder = Callable[..., keras.Model]

_BUILDERS = registry.Registry("backbone", "hortus.vision.modeling.backbones")


def register_backbone_builder(key: str) -> Callable[[Builder], Builder]:
    """Decorates the function that builds a backbone, and makes it the backbone of type `key`.

        @factory.register_backbone_builder("my_backbone")
        def build_my_backbone(
            input_specs, backbone_config, norm_activation_config, l2_regularizer=None
        ):
            config = backbone_config.get()
            return MyBackbone(config.depth, input_specs, kernel_regularizer=l2_regularizer)

    The builder receives:
        input_specs: `keras.layers.InputSpec` of the images, batch first: (None, height, width, 3),
            where height and width may be None too.
        backbone_config: the `Backbone` config, whose `type` is `key`; its `get()` is the
            sub-config of the same name. Yours joins by subclassing `Backbone` with one more field.
        norm_activation_config: the `NormActivation` config; `NormAct.from_config` takes it.
        l2_regularizer: what to regularise kernels with, or None.

    It returns a `keras.Model` that maps a batch of images to a dict of features, keyed by level as
    a string ('3' is 2^3 times smaller than the image), and that has `output_specs`: the shapes of
    those features, batch first, by the same keys.

    Args:
        key: the value of `backbone.type` in configs.
    """
    return registry.register(_BUILDERS, key)


def build_backbone(
    input_specs: keras.layers.InputSpec,
    backbone_config: Any,
    norm_activation_config: Any,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
) -> keras.Model:
    """Builds the backbone that a config chooses.

    Args:
        input_specs: shape of the images, batch first.
        backbone_config: a `Backbone` config, or a subclass of it.
        norm_activation_config: a `NormActivation` config.
        l2_regularizer: of the kernels, or None.

    Returns:
        A model from images to features by level, with `output_specs`.

    Raises:
        RegistryError: no builder has the key `backbone_config.type`.
    """
    build = registry.lookup(_BUILDERS, backbone_config.type)
    return build(
        input_specs=input_specs,
        backbone_config=backbone_config,
        norm_activation_config=norm_activation_config,
        l2_regularizer=l2_regularizer,
    )


def registered_backbones() -> list[str]:
    """All values that `backbone.type` can have: ours, of every module here, and those of others."""
    _BUILDERS.load()
    return sorted(_BUILDERS)
