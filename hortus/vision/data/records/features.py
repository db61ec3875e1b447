"""What examples are made of, whatever the task."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from hortus.vision.data import progress
from hortus.vision.dataloaders.errors import DataError

_SIGNATURES = {b"\xff\xd8": "jpeg", b"\x89P": "png", b"BM": "bmp", b"GI": "gif"}


def bytes_feature(*values: bytes) -> tf.train.Feature:
    """Any number of byte strings."""
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def int_feature(*values: Any) -> tf.train.Feature:
    """Any number of whole numbers."""
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(each) for each in values]))


def float_feature(values: Sequence[float]) -> tf.train.Feature:
    """Numbers."""
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def format_feature(encoded: bytes) -> tf.train.Feature:
    """The format of an encoded image, such as jpeg; empty where it is not known."""
    return bytes_feature(_SIGNATURES.get(encoded[:2], "").encode())


def serialize(features: dict[str, tf.train.Feature]) -> bytes:
    """An example as it is stored."""
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def readable(source: Any, skips_bad: bool) -> Iterator[Any]:
    """What `RawImages` or `RawMasks` yield, with progress, without those that have a problem."""
    for each in progress.track(source, "converting", source.info.num_examples):
        if each.problem:
            leave_out(f"{each.where}: {each.problem}", skips_bad)
        else:
            yield each


def leave_out(problem: str, skips_bad: bool) -> None:
    """Tells of an example that cannot be read.

    Raises:
        DataError: where such examples are not to be skipped.
    """
    if not skips_bad:
        raise DataError(
            f"{problem}. `hortus data check` finds all such images; skip_bad_records=true leaves "
            "them out"
        )
    logging.getLogger(__name__).warning("left out %s", problem)
