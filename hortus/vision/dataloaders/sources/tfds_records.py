"""Data sets of TensorFlow Datasets, read as the files of records that they are.

Their own pipeline cannot save its position; so only their description is used, and our pipeline.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hortus.core import config_definitions as cfg
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources.record_files import (
    FilePart,
    RecordFiles,
    count_plain_records,
)


def build(
    params: cfg.DataConfig, name: str, decoder_fn: Callable[[Any], Any] | None
) -> RecordFiles:
    """The records of a data set that has been prepared.

    Args:
      params: `tfds_split`, `tfds_data_dir`, `tfds_as_supervised`, `tfds_skip_decoding_feature`.
      name: name of the data set, with its config and version if wanted.
      decoder_fn: applied to the features of an example, a dict, or to (input, label).
    """
    tfds = _import(name)
    builder = tfds.builder(name, data_dir=params.tfds_data_dir or None)
    info = builder.info
    if not params.tfds_split:
        raise DataError(f"tfds_split is not set; {name} has {', '.join(info.splits)}")
    try:
        split = info.splits[params.tfds_split]
    except (KeyError, ValueError) as error:
        known = ", ".join(info.splits)
        if known:
            raise DataError(
                f"{name} has no split {params.tfds_split!r}, but {known}: {error}"
            ) from None
        raise DataError(
            f"{name} is not in {params.tfds_data_dir or 'the folder of TensorFlow Datasets'} yet. "
            f"Prepare it with `tfds build {name}` and set tfds_data_dir"
        ) from None
    parts = [
        FilePart(str(each.filename), int(each.skip), int(each.take))
        for each in split.file_instructions
    ]
    skipped = [key.strip() for key in params.tfds_skip_decoding_feature.split(",") if key.strip()]
    decoders = {key: tfds.decode.SkipDecoding() for key in skipped} or None

    def decode(record: tf.Tensor) -> Any:
        example = info.features.deserialize_example(record, decoders=decoders)
        if params.tfds_as_supervised:
            example = tuple(example[key] for key in info.supervised_keys)
        return example if decoder_fn is None else decoder_fn(example)

    return RecordFiles(
        parts,
        decode,
        cycle_length=params.cycle_length,
        block_length=params.block_length,
        info=dataclasses.replace(describe_features(info), num_examples=int(split.num_examples)),
        count_fn=count_plain_records,
    )


def describe_features(info: Any) -> DatasetInfo:
    """The classes that the features of a data set name, where one of them is a class."""
    features = dict(info.features)
    label = features.get("label")
    if label is None:
        # Objects are a sequence of such dicts.
        sequence = features.get("objects", features.get("panoptic_objects"))
        objects = getattr(sequence, "feature", None) or {}
        label = dict(objects).get("label")
    return DatasetInfo(tuple(getattr(label, "names", None) or ()))


def _import(name: str) -> Any:
    try:
        import tensorflow_datasets
    except ImportError:
        raise DataError(
            f"tfds_name is {name!r}, but TensorFlow Datasets is not installed: "
            "pip install 'hortus[tfds]', or set input_path to files of your own"
        ) from None
    return tensorflow_datasets
