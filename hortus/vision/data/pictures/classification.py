"""Pictures of classification data: the images of training's batches with their classes below."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image

from hortus.vision.configs import image_classification as configs
from hortus.vision.data.raw_images import class_text
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.classification import reader as classification_input
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.visualization.contact_sheet import captioned

_SHOWN_SHARE = 0.05
"""Least share of a class in a mixed image that its caption tells."""


def pictures(
    params: configs.DataConfig, task_config: configs.ImageClassificationTask, count: int
) -> list[Image.Image]:
    """The first images of the pipeline, with their classes; shares of classes where they mix."""
    model = task_config.model
    if not model.num_classes:
        raise DataError("task.model.num_classes is 0: how many classes are there?")
    names = classification_input.names_of_training(params, task_config.train_data)
    batch_size = params.global_batch_size or count
    params = dataclasses.replace(params, global_batch_size=batch_size, drop_remainder=False)
    reader = classification_input.build_reader(
        params, model.input_size[:2], model.num_classes, names
    )
    drawn: list[Image.Image] = []
    try:
        for images, labels in reader.read():
            for image, label in zip(images.numpy(), labels.numpy(), strict=True):
                text = _caption(label, reader.info.class_names)
                drawn.append(captioned(_as_bytes(image), text))
                if len(drawn) == count:
                    return drawn
    except tf.errors.OpError as error:
        raise DataError(reader.explain(error) or str(error)) from error
    return drawn


def _as_bytes(image: np.ndarray) -> np.ndarray:
    """Undoes the normalisation."""
    scale, mean = np.array(preprocess.STDDEV_RGB), np.array(preprocess.MEAN_RGB)
    return np.clip(image.astype(np.float32) * scale + mean + 0.5, 0, 255).astype(np.uint8)


def _caption(label: Any, names: Sequence[str]) -> str:
    if np.ndim(label) == 0:
        return class_text([int(label)], names)
    order = [int(number) for number in np.argsort(-label) if label[number] >= _SHOWN_SHARE]
    if all(label[number] == 1 for number in order):
        return class_text(sorted(order), names) or "(none)"
    return ", ".join(f"{class_text([number], names)} {label[number]:.0%}" for number in order[:2])
