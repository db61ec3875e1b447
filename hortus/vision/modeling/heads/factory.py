"""Builds heads from configs: the class of the config decides which."""

from collections.abc import Callable
from typing import Any

import keras

from hortus import registry

Builder = Callable[..., keras.layers.Layer]

_BUILDERS = registry.Registry("head for the config", "hortus.vision.modeling.heads")


def register_head(config_cls: type) -> Callable[[Builder], Builder]:
    """Decorates the function that builds a head, and makes it the head of a config class.

        @dataclasses.dataclass
        class GatedHead(heads.SegmentationHead):
            gates: int = 2

        @factory.register_head(GatedHead)
        def build_gated_head(head_config, model_config, norm_act, l2_regularizer=None, name=None):
            return GatedHeadLayer(head_config.gates, model_config.num_classes, name=name)

    A model takes it when its own config has such a head: a subclass of the model's config says
    `head: GatedHead`. A config without a head of its own has that of the nearest of its bases.

    The builder receives:
        head_config: an instance of `config_cls`.
        model_config: the config of the whole model, with `num_classes`.
        norm_act: the `NormAct` of the model.
        l2_regularizer: what to regularise kernels with, or None.
        name: of the layer.

    It returns a layer that is called like the head of the parent config, and returns the same
    structure: `RetinaNetHead`, `SegmentationHead` and `MaskScoring` say which.

    Args:
        config_cls: a `hyperparams.Config`.
    """
    return registry.register(_BUILDERS, config_cls)


def build_head(
    head_config: Any,
    model_config: Any,
    norm_act: Any,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
    name: str | None = None,
) -> keras.layers.Layer:
    """Builds the head that a config describes; see `register_head` for the arguments.

    Raises:
        RegistryError: no head is registered for the config's class or a base of it.
    """
    build = registry.lookup_for(_BUILDERS, type(head_config))
    return build(
        head_config=head_config,
        model_config=model_config,
        norm_act=norm_act,
        l2_regularizer=l2_regularizer,
        name=name,
    )
