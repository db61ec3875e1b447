"""Segmentation data as records."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.data.raw_masks import RawMask, RawMasks
from hortus.vision.data.records.features import bytes_feature, int_feature, readable, serialize
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.segmentation.reader import MASK_KEY


def info(params: configs.DataConfig, task_config: configs.SemanticSegmentationTask) -> DatasetInfo:
    """The classes, in the order of the numbers in the masks, and the number of images."""
    return RawMasks(params, task_config).info


def examples(
    params: configs.DataConfig, task_config: configs.SemanticSegmentationTask
) -> Iterator[bytes]:
    """Yields one example per image: the image as it is stored, the mask as a grey PNG.

    One that cannot be read is an error, or is left out where `params.skip_bad_records` says so.
    """
    for each in readable(RawMasks(params, task_config), params.skip_bad_records):
        yield _example(each, params)


def _example(each: RawMask, params: configs.DataConfig) -> bytes:
    assert each.mask is not None
    kind = np.uint8 if each.mask.max(initial=0) < 256 else np.uint16
    mask = tf.io.encode_png(each.mask.astype(kind)[..., None]).numpy()
    height, width = each.mask.shape
    features = {
        params.image_feature.feature_name: bytes_feature(each.encoded),
        "image/filename": bytes_feature(each.where.split(" with ")[0].encode()),
        "image/height": int_feature(height),
        "image/width": int_feature(width),
        MASK_KEY: bytes_feature(mask),
        "image/segmentation/class/format": bytes_feature(b"png"),
    }
    return serialize(features)
