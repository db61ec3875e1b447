"""Turns the data of a task into TFRecord files, in a folder that appears when it is complete."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from hortus.core.checkpoints import atomic_folder
from hortus.vision.data import records, shards
from hortus.vision.data.raw_images import is_set
from hortus.vision.dataloaders import dataset_info
from hortus.vision.dataloaders.errors import DataError

SPLITS = {"train": "train_data", "validation": "validation_data"}
"""Fields of a task's config, by the names of its splits."""


def data_of(task_config: Any, split: str) -> Any:
    """The data config of a split.

    Raises:
        DataError: it names no data.
    """
    data = task_config.get(SPLITS[split])
    if not is_set(data):
        raise DataError(f"task.{SPLITS[split]} names no data: set its input_path")
    return data


def convert(
    task_config: Any,
    output: str,
    splits: Sequence[str] = (),
    num_shards: Optional[int] = None,
    force: bool = False,
) -> dict[str, Mapping[str, int]]:
    """Writes the records of a task's data: training data shuffled, other data in order.

    Args:
        task_config: whose data it is.
        output: folder to make. One that is there stays as it is, unless `force` is set and it holds
            nothing but records of an earlier call.
        splits: which data, `train` or `validation`; empty for all that is named.
        num_shards: files per split; None for one per 1000 images.
        force: whether to replace the records of an earlier call.

    Returns:
        The number of examples by file, by split.

    Raises:
        DataError: there is nothing to convert, it cannot be read, or `output` is in the way.
    """
    chosen = list(splits) or [name for name in SPLITS if is_set(task_config.get(SPLITS[name]))]
    if not chosen:
        raise DataError("no data is named: set task.train_data.input_path")
    output = os.path.abspath(output)
    _check_replaceable(output, force)
    # Before anything is written: all of these may fail for want of data.
    infos = {name: records.info(data_of(task_config, name), task_config) for name in chosen}
    folder = atomic_folder.begin(output)
    try:
        counts = {
            name: _write(task_config, name, infos[name].num_examples, folder, num_shards)
            for name in chosen
        }
        names = next((info.class_names for info in infos.values() if info.class_names), ())
        per_file = {file: count for part in counts.values() for file, count in part.items()}
        dataset_info.write_info(folder, names, per_file)
        atomic_folder.commit(folder, output)
    finally:
        atomic_folder.discard(folder)
    return counts


def _write(
    task_config: Any, split: str, num_examples: Optional[int], folder: str, wanted: Optional[int]
) -> Mapping[str, int]:
    """Writes a split; returns the number of examples by file."""
    data = data_of(task_config, split)
    count = wanted or shards.number_of_shards(num_examples)
    examples = records.examples(data, task_config)
    if data.is_training:
        written = shards.write_shuffled(examples, folder, split, count)
    else:
        per_shard = -(-(num_examples or 1000 * count) // count)
        written = shards.write_in_order(examples, folder, split, per_shard)
    if not written:
        raise DataError(f"task.{SPLITS[split]} has no examples to convert")
    return written


def _check_replaceable(output: str, force: bool) -> None:
    """Raises unless nothing, or an earlier result that may be replaced, is at `output`."""
    if not os.path.lexists(output):
        return
    if not os.path.isdir(output):
        raise DataError(f"output {output}: is a file, where a new folder is to be made")
    found = set(os.listdir(output))
    if not found:
        return
    if not force:
        raise DataError(
            f"output {output}: is there already; choose another folder, or let `force` replace its "
            "content"
        )
    own = {*dataset_info.record_files(output), dataset_info.FILE_NAME}
    if not found <= own:
        others = sorted(found - own)
        shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        raise DataError(
            f"output {output}: holds other files than records of `hortus data make-tfrecord`, "
            f"which `force` would delete: {shown}"
        )
