"""The model of a task, as the configs of all tasks mean it."""

from collections.abc import Callable
from typing import Any

import keras

from hortus.vision.tasks.weight_decay import l2_regularizer


def build_task_model(build: Callable[..., keras.Model], task_config: Any) -> keras.Model:
    """Builds a model with its weight decay, and freezes its backbone if the config says so.

    Args:
        build: `build(input_specs, model_config, l2_regularizer)`, one of
            `hortus.vision.modeling.factory`. What it returns has a `backbone`.
        task_config: has `model`, with `input_size`, `losses.l2_weight_decay` and
            `freeze_backbone`.
    """
    model = build(
        keras.layers.InputSpec(shape=[None, *task_config.model.input_size]),
        task_config.model,
        l2_regularizer(task_config.losses.l2_weight_decay),
    )
    if task_config.freeze_backbone:
        model.backbone.trainable = False
    return model
