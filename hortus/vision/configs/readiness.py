"""What a vision task still lacks when a run is to begin.

The general experiments (`image_classification`, `retinanet`, ...) leave data, sizes and classes to
the user, so `check` lets those pass; a run does not.
"""

from collections.abc import Iterator

from hortus.core import config_definitions as cfg


def problems(experiment: cfg.ExperimentConfig, mode: str) -> Iterator[str]:
    """Yields one message per value that has to be set; each starts with the field's path."""
    task = experiment.task
    if task.get("model.num_classes") == 0:
        yield "task.model.num_classes must be set, to the number of classes in the data"
    if task.get("model.input_size") == []:
        yield "task.model.input_size must be set, to [height, width, channels]"
    for part in ("backbone", "decoder"):
        choice = task.get(f"model.{part}")
        if choice is None:
            continue
        if choice.type is None:
            yield f"task.model.{part}.type must be set, to one of: {', '.join(choice.choices())}"
        elif choice.get() is None:
            yield f"task.model.{part}.{choice.type} must not be null"
    if "train" in mode:
        yield from _data_problems("task.train_data", task.train_data)
        for message in experiment.trainer.optimizer_config.check_for_run():
            yield f"trainer.optimizer_config.{message}"
    if mode != "train":
        yield from _data_problems("task.validation_data", task.validation_data)


def _data_problems(name: str, data: cfg.DataConfig) -> Iterator[str]:
    if data.global_batch_size == 0:
        yield f"{name}.global_batch_size must be set, to the number of examples per step"
    if not data.input_path and not data.tfds_name:
        yield f"{name}.input_path must name the data, unless {name}.tfds_name does"


def channel_problems(
    task: cfg.TaskConfig, channels: int | None, told_by: str = "the images"
) -> Iterator[str]:
    """Yields when the model takes images of other channels than the data has.

    Args:
        task: the config.
        channels: what the data has; None if that is not known.
        told_by: what tells so, for the message.
    """
    size = task.get("model.input_size")
    if size and channels is not None and len(size) == 3 and size[2] != channels:
        yield f"model.input_size must end in the {channels} channels of {told_by}, got {size}"
