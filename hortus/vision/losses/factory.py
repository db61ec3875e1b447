"""Builds losses from configs: the class of a task's `losses` decides which."""

from collections.abc import Callable
from typing import Any

from hortus import registry

Builder = Callable[[Any], Callable[..., Any]]

_BUILDERS = registry.Registry("loss for the config", "hortus.vision.losses")


def register_loss(config_cls: type) -> Callable[[Builder], Builder]:
    """Decorates the function that builds a loss, and makes it the loss of a config class.

        @dataclasses.dataclass
        class AngularLosses(image_classification.Losses):
            margin: float = 0.2

        @factory.register_loss(AngularLosses)
        def build_angular_loss(task_config):
            margin = task_config.losses.margin
            return lambda labels, model_outputs: angular_loss(labels, model_outputs, margin)

    A task takes it when its own config has such losses: a subclass of the task's config says
    `losses: AngularLosses`. A config without a loss of its own has that of the nearest of its
    bases. The task multiplies it by `losses.loss_weight` and adds weight decay.

    The builder receives:
        task_config: the config of the task, whose `losses` are an instance of `config_cls`.

    It returns a function of a batch on `keras.ops` that takes and returns what the loss of the
    parent config does. For image classification and segmentation this is `loss(labels,
    model_outputs)`, a scalar that is the mean over the batch; for RetinaNet see `RetinaNetLoss`.

    Args:
        config_cls: a `hyperparams.Config`.
    """
    return registry.register(_BUILDERS, config_cls)


def build_loss(task_config: Any) -> Callable[..., Any]:
    """Builds the loss that a task's config describes.

    Raises:
        RegistryError: no loss is registered for the class of `task_config.losses` or a base of it.
    """
    return registry.lookup_for(_BUILDERS, type(task_config.losses))(task_config)
