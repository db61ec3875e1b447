"""Detection data as records."""

import io
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image

from hortus.vision.configs import detection as configs
from hortus.vision.data import progress
from hortus.vision.data.records.features import (
    bytes_feature,
    float_feature,
    format_feature,
    int_feature,
    leave_out,
    serialize,
)
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.attempts import reason_of
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.dataloaders.detection.decoder import MASK_CODES, MASK_FILES
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.sources.base import Shard
from hortus.vision.ops.segmentations import decode_bitmap


def info(params: configs.DataConfig, task_config: configs.DetectionTask) -> DatasetInfo:
    """The names of the classes 1, 2, ..., as the records number them, and the number of images."""
    return _reader(params, task_config).info


def examples(params: configs.DataConfig, task_config: configs.DetectionTask) -> Iterator[bytes]:
    """Yields one example per image, the image as it is stored, boxes as shares of its size.

    Masks, where the model learns them, are written twice: as PNG files of the whole image, which
    others read too, and as run-lengths, which are read many times faster.

    Every image is decoded once, to see that it can be and has the size told. One that cannot is an
    error, or is left out where `params.skip_bad_records` says so.
    """
    reader = _reader(params, task_config)
    for source in reader.sources.values():
        references = source.one_pass(Shard(), None)
        for reference in progress.track(references, "converting", source.info.num_examples):
            where = source.where(tf.nest.map_structure(lambda value: value.numpy(), reference))
            try:
                example = tf.nest.map_structure(lambda value: value.numpy(), source.load(reference))
                size = preprocess.decode_image(example["image"]).shape[:2]
                _check_size(example, size)
            except (tf.errors.OpError, ValueError) as error:
                leave_out(f"{where}: {reason_of(error)}", params.skip_bad_records)
            else:
                yield _example(example, size, where, reader.info.class_names)


def _reader(params: configs.DataConfig, task_config: configs.DetectionTask) -> InputReader:
    names = detection_input.names_of_training(params, task_config)
    return detection_input.build_reader(params, task_config.model, names)


def _check_size(example: dict[str, Any], size: Sequence[int]) -> None:
    told = (int(example["height"]), int(example["width"]))
    if all(told) and told != tuple(size):
        raise ValueError(
            f"the image has height and width {tuple(size)}, its annotation says {told}"
        )


def _example(
    example: dict[str, Any], size: Sequence[int], where: str, class_names: tuple[str, ...]
) -> bytes:
    boxes, classes = example["groundtruth_boxes"], example["groundtruth_classes"]
    areas = example["groundtruth_area"]
    sides = (boxes[:, 2:] - boxes[:, :2]) * size
    areas = np.where(areas < 0, sides[:, 0] * sides[:, 1], areas)
    features = {
        "image/encoded": bytes_feature(example["image"]),
        "image/format": format_feature(example["image"]),
        "image/filename": bytes_feature(os.path.basename(where).encode()),
        "image/source_id": bytes_feature(str(int(example["source_id"])).encode()),
        "image/height": int_feature(size[0]),
        "image/width": int_feature(size[1]),
        "image/object/class/label": int_feature(*classes),
        "image/object/area": float_feature(areas),
        "image/object/is_crowd": int_feature(*example["groundtruth_is_crowd"]),
    }
    for column, edge in enumerate(("ymin", "xmin", "ymax", "xmax")):
        features[f"image/object/bbox/{edge}"] = float_feature(boxes[:, column])
    if np.any(example["groundtruth_is_difficult"]):
        features["image/object/difficult"] = int_feature(*example["groundtruth_is_difficult"])
    if class_names:
        names = [class_names[number - 1].encode() for number in classes]
        features["image/object/class/text"] = bytes_feature(*names)
    for name, values in example.get("groundtruth_attributes", {}).items():
        features[f"image/object/attribute/{name}"] = int_feature(*values[:, 0])
    if "groundtruth_masks" in example:
        codes = [bytes(code) for code in example["groundtruth_masks"]]
        features[MASK_CODES] = bytes_feature(*codes)
        features[MASK_FILES] = bytes_feature(*(_png(code, size) for code in codes))
    return serialize(features)


def _png(code: bytes, size: Sequence[int]) -> bytes:
    """A mask as a PNG file, 0 or 1 at each pixel."""
    file = io.BytesIO()
    Image.fromarray(decode_bitmap(code, *size)).save(file, "png")
    return file.getvalue()
