"""Segmentation data as records."""

import logging
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.data import progress
from hortus.vision.data.raw_masks import RawMask, RawMasks
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.segmentation_input import MASK_KEY


def info(params: configs.DataConfig, task_config: configs.SemanticSegmentationTask) -> DatasetInfo:
    """The classes, in the order of the numbers in the masks, and the number of images."""
    return RawMasks(params, task_config).info


def examples(
    params: configs.DataConfig, task_config: configs.SemanticSegmentationTask
) -> Iterator[bytes]:
    """Yields one example per image: the image as it is stored, the mask as a grey PNG.

    One that cannot be read is an error, or is left out where `params.skip_bad_records` says so.
    """
    masks = RawMasks(params, task_config)
    for each in progress.track(masks, "converting", masks.info.num_examples):
        if each.problem and not params.skip_bad_records:
            raise DataError(
                f"{each.where}: {each.problem}. `hortus data check` finds all such images; "
                "skip_bad_records=true leaves them out"
            )
        if each.problem:
            logging.getLogger(__name__).warning("left out %s: %s", each.where, each.problem)
        else:
            yield _example(each, params).SerializeToString()


def _example(each: RawMask, params: configs.DataConfig) -> tf.train.Example:
    assert each.mask is not None
    kind = np.uint8 if each.mask.max(initial=0) < 256 else np.uint16
    mask = tf.io.encode_png(each.mask.astype(kind)[..., None]).numpy()
    height, width = each.mask.shape
    features = {
        params.image_feature.feature_name: _bytes(each.encoded),
        "image/filename": _bytes(each.where.split(" with ")[0].encode()),
        "image/height": _integer(height),
        "image/width": _integer(width),
        MASK_KEY: _bytes(mask),
        "image/segmentation/class/format": _bytes(b"png"),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


def _bytes(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _integer(value: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
