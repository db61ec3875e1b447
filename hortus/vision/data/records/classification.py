"""Classification data as records."""

import os
from collections.abc import Iterator

from hortus.vision.configs import image_classification as configs
from hortus.vision.data.raw_images import RawImage, RawImages
from hortus.vision.data.records.features import (
    bytes_feature,
    format_feature,
    int_feature,
    readable,
    serialize,
)
from hortus.vision.dataloaders.dataset_info import DatasetInfo


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
    for image in readable(images, params.skip_bad_records):
        yield _example(image, images.info.class_names, params)


def _example(image: RawImage, class_names: tuple[str, ...], params: configs.DataConfig) -> bytes:
    assert image.pixels is not None
    name = os.path.basename(image.where)
    features = {
        params.image_field_key: bytes_feature(image.encoded),
        params.label_field_key: int_feature(*image.classes),
        "image/format": format_feature(image.encoded),
        "image/filename": bytes_feature(name.encode()),
        "image/height": int_feature(image.pixels.shape[0]),
        "image/width": int_feature(image.pixels.shape[1]),
    }
    if class_names:
        names = [class_names[number].encode() for number in image.classes]
        features["image/class/text"] = bytes_feature(*names)
    return serialize(features)
