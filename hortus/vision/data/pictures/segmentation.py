"""Pictures of segmentation data: the images of training's batches under their masks."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image

from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.data.raw_images import class_text
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.segmentation import reader as segmentation_input
from hortus.vision.visualization.contact_sheet import captioned
from hortus.vision.visualization.masks import background_class, overlay_masks


def pictures(
    params: configs.DataConfig, task_config: configs.SemanticSegmentationTask, count: int
) -> list[Image.Image]:
    """The first images of the pipeline, under the colours of their classes."""
    if not task_config.model.num_classes:
        raise DataError("task.model.num_classes is 0: how many classes are there?")
    # One by one, as images without a common size would be padded to that of their batch.
    params = dataclasses.replace(params, global_batch_size=1, drop_remainder=False)
    reader = segmentation_input.build_reader(
        params,
        task_config.model.input_size[:2],
        task_config.model.num_classes,
        task_config.losses.ignore_label,
    )
    drawn: list[Image.Image] = []
    try:
        for images, labels in reader.read():
            mask = labels["masks"][0].numpy()[..., 0]
            if not params.is_training and not params.resize_eval_groundtruth:
                raise DataError(
                    "the masks have other sizes than the images here: set "
                    "resize_eval_groundtruth=true to see them together"
                )
            image = _as_bytes(images[0].numpy(), params.image_feature)
            drawn.append(_draw(image, mask, reader.info.class_names, task_config))
            if len(drawn) == count:
                break
    except tf.errors.OpError as error:
        raise DataError(reader.explain(error) or str(error)) from error
    return drawn


def _draw(
    image: np.ndarray, mask: np.ndarray, names: tuple[str, ...], task_config: Any
) -> Image.Image:
    num_classes, ignored = task_config.model.num_classes, task_config.losses.ignore_label
    background = background_class(names)
    covered = overlay_masks(image, mask, num_classes, ignored, background, opacity=0.45)
    shown = [int(number) for number in np.unique(mask) if number != ignored]
    return captioned(covered, class_text(shown, names) or "(nothing counts)")


def _as_bytes(image: np.ndarray, feature: configs.DenseFeatureConfig) -> np.ndarray:
    """Undoes the normalisation; uint8 [height, width, 3], of images with one channel too."""
    channels = feature.num_channels
    colours = image[..., :channels].astype(np.float32)
    colours = colours * np.array(feature.stddev) + np.array(feature.mean)
    colours = np.clip(np.rint(colours), 0, 255).astype(np.uint8)
    return colours[..., :3] if channels >= 3 else np.repeat(colours[..., :1], 3, axis=-1)
