"""From the settings of an experiment to the sources of records they name."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hortus.core import config_definitions as cfg
from hortus.vision.dataloaders import paths
from hortus.vision.dataloaders.attempts import BadRecords
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources import tfds_records
from hortus.vision.dataloaders.sources.base import Source
from hortus.vision.dataloaders.sources.record_files import (
    COMPRESSIONS,
    FilePart,
    RecordFiles,
    check_format,
    count_plain_records,
    without_damage,
)

ONLY = ""
"""Name of the source where there is but one."""


def by_name(value: Any) -> dict[str, Any]:
    """The entries of a mapping, or the value itself under one name."""
    as_dict = getattr(value, "as_dict", None)
    return dict(as_dict()) if as_dict is not None else {ONLY: value}


def build_record_sources(
    params: cfg.DataConfig,
    decoder_fn: Callable[[Any], Any] | None,
    dataset_fn: Callable[[tf.Tensor], tf.data.Dataset] | None,
    bad_records: BadRecords,
) -> dict[str, Source]:
    """The sources of `params.input_path` or `params.tfds_name`, by name.

    Args:
      params: what to read and how.
      decoder_fn: a record -> a dict of tensors.
      dataset_fn: a path -> the records of a file; None goes by `params.file_type`.
      bad_records: takes note of damaged files, where `params.skip_bad_records` says so.
    """
    if params.tfds_name and params.input_path:
        raise DataError("input_path and tfds_name are both set: which of them is the data?")
    if params.tfds_name:
        return {
            name: tfds_records.build(params, tfds_name, decoder_fn)
            for name, tfds_name in by_name(params.tfds_name).items()
        }
    return {
        name: _record_files(params, path, decoder_fn, dataset_fn, bad_records)
        for name, path in by_name(params.input_path).items()
    }


def _record_files(
    params: cfg.DataConfig,
    input_path: Any,
    decoder_fn: Callable[[Any], Any] | None,
    dataset_fn: Callable[[tf.Tensor], tf.data.Dataset] | None,
    bad_records: BadRecords,
) -> RecordFiles:
    files = paths.match_files(input_path)
    count_fn = None
    if dataset_fn is None:
        file_type = getattr(params, "file_type", "tfrecord")
        if file_type not in COMPRESSIONS:
            raise DataError(
                f"file_type {file_type!r} is not for files of records; expected one of "
                f"{', '.join(COMPRESSIONS)}"
            )
        compression = COMPRESSIONS[file_type]
        for path in files:
            # Far away, opening thousands of files would take long.
            if "://" not in path or path == files[0]:
                check_format(path, compression)

        def dataset_fn(path: tf.Tensor) -> tf.data.Dataset:
            return tf.data.TFRecordDataset(path, compression)

        count_fn = None if compression else count_plain_records

    parts = [FilePart(path) for path in files]
    if params.skip_bad_records:
        parts = without_damage(parts, dataset_fn, bad_records.add)
    return RecordFiles(
        parts,
        decoder_fn,
        dataset_fn,
        params.cycle_length,
        params.block_length,
        count_fn=count_fn,
    )
