"""Pictures of detection data: the images of training's batches with their boxes and masks."""

import dataclasses

import numpy as np
import tensorflow as tf
from PIL import Image

from hortus.vision.configs import detection as configs
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.visualization.instances import draw_instances, paste_masks

_READABLE = 384
"""Images with a smaller side, in pixels, are enlarged before they are written on."""


def pictures(
    params: configs.DataConfig, task_config: configs.DetectionTask, count: int
) -> list[Image.Image]:
    """The first images of the pipeline, with the boxes, and masks, that the model learns."""
    batch_size = params.global_batch_size or count
    params = dataclasses.replace(params, global_batch_size=batch_size, drop_remainder=False)
    names = detection_input.names_of_training(params, task_config)
    reader = detection_input.build_reader(params, task_config.model, names)
    class_names = reader.info.class_names
    drawn: list[Image.Image] = []
    try:
        for images, labels in reader.read():
            for row, image in enumerate(images.numpy()):
                pixels = _as_bytes(image)
                factor = -(-_READABLE // min(pixels.shape[:2]))
                pixels = pixels.repeat(factor, axis=0).repeat(factor, axis=1)
                boxes = labels["boxes"][row].numpy() * factor
                classes = labels["classes"][row].numpy()
                masks = None
                if "masks" in labels:
                    is_object = classes > 0
                    boxes, classes = boxes[is_object], classes[is_object]
                    samples = labels["masks"][row].numpy()[is_object]
                    masks = paste_masks(samples, boxes, pixels.shape[:2])
                picture = draw_instances(
                    pixels, boxes, classes, class_names=class_names, masks=masks
                )
                drawn.append(Image.fromarray(picture))
                if len(drawn) == count:
                    return drawn
    except tf.errors.OpError as error:
        raise DataError(reader.explain(error) or str(error)) from error
    return drawn


def _as_bytes(image: np.ndarray) -> np.ndarray:
    """Undoes the normalisation; uint8 [height, width, 3]."""
    scale, mean = np.array(preprocess.STDDEV_RGB), np.array(preprocess.MEAN_RGB)
    if image.shape[-1] != 3:
        scale, mean = scale.mean(), mean.mean()
    pixels = np.clip(image.astype(np.float32) * scale + mean + 0.5, 0, 255).astype(np.uint8)
    return np.broadcast_to(pixels, (*pixels.shape[:2], 3)) if pixels.shape[-1] == 1 else pixels
