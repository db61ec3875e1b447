"""Classification data as records."""

import logging
import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from hortus.vision.configs import image_classification as configs
from hortus.vision.data import progress
from hortus.vision.data.raw_images import RawImage, RawImages
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError

_SIGNATURES = {b"\xff\xd8": "jpeg", b"\x89P": "png", b"BM": "bmp", b"GI": "gif"}


def info(params: configs.DataConfig, task_config: configs.ImageClassificationTask) -> DatasetInfo:
    """The classes, in the order of the numbers in the records, and the number of images."""
    return RawImages(params, task_config).info


def examples(
    params: configs.DataConfig, task_config: configs.ImageClassificationTask
) -> Iterator[bytes]:
    """Yields one example per image, the image as it is stored.

    Every image is decoded once, to see that it can be. One that cannot is an error, or is left out
    where `params.skip_bad_records` says so.
    """
    images = RawImages(params, task_config)
    for image in progress.track(images, "converting", images.info.num_examples):
        if image.problem and not params.skip_bad_records:
            raise DataError(
                f"{image.where}: {image.problem}. `hortus data check` finds all such images; "
                "skip_bad_records=true leaves them out"
            )
        if image.problem:
            logging.getLogger(__name__).warning("left out %s: %s", image.where, image.problem)
        else:
            yield _example(image, images.info.class_names, params).SerializeToString()


def _example(
    image: RawImage, class_names: tuple[str, ...], params: configs.DataConfig
) -> tf.train.Example:
    assert image.pixels is not None
    name = os.path.basename(image.where)
    features: dict[str, Any] = {
        params.image_field_key: _bytes(image.encoded),
        params.label_field_key: _integers(*image.classes),
        "image/format": _bytes(_SIGNATURES.get(image.encoded[:2], "").encode()),
        "image/filename": _bytes(name.encode()),
        "image/height": _integers(image.pixels.shape[0]),
        "image/width": _integers(image.pixels.shape[1]),
    }
    if class_names:
        names = [class_names[number].encode() for number in image.classes]
        features["image/class/text"] = _bytes(*names)
    return tf.train.Example(features=tf.train.Features(feature=features))


def _bytes(*values: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _integers(*values: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
