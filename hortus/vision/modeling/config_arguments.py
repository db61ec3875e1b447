"""Constructor arguments from the fields of a config.

A config's fields are called as the arguments of the class that it stands for, so that one function
builds all of them: a new field needs a new argument and nothing else.
"""

import dataclasses
from typing import Any

from hortus import hyperparams
from hortus.vision.modeling.layers.configurable import argument_names
from hortus.vision.modeling.layers.normalization.norm_act import NormAct


def field_values(config: hyperparams.Config) -> dict[str, Any]:
    """The fields of a config by name, without those that have no effect."""
    return {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if not field.metadata.get("inert")
    }


def layer_arguments(
    cls: type, fields: dict[str, Any], norm_activation_config: Any, l2_regularizer: Any
) -> dict[str, Any]:
    """Arguments of a backbone or decoder: the fields of its config, and what all of them take.

    Args:
        cls: what to build.
        fields: by name. Those of `NormAct`, such as `bn_trainable`, become part of `norm_act`.
        norm_activation_config: the `NormActivation` of the model.
        l2_regularizer: of the kernels, or None.
    """
    of_norms = {name: fields[name] for name in NORM_FIELDS if name in fields}
    arguments = {name: value for name, value in fields.items() if name not in of_norms}
    if "norm_act" in argument_names(cls):
        arguments["norm_act"] = NormAct.from_config(norm_activation_config, **of_norms)
    return {**arguments, "kernel_regularizer": l2_regularizer}


NORM_FIELDS = ("bn_trainable",)
"""Fields of a backbone's config that are arguments of `NormAct`."""
