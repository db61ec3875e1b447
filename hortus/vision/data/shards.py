"""Writing records to several files."""

import math
import os
import random
from collections.abc import Iterable, Sequence
from typing import Optional

import tensorflow as tf

_PER_SHARD = 1000
_MOST = 128
"""Files that are open at the same time, too."""


def number_of_shards(num_examples: Optional[int]) -> int:
    """How many files suit a data set: one per thousand examples, up to 128."""
    return min(math.ceil((num_examples or 16 * _PER_SHARD) / _PER_SHARD) or 1, _MOST)


def write_shuffled(
    records: Iterable[bytes], folder: str, name: str, count: int, seed: int = 0
) -> dict[str, int]:
    """Writes records in a random order over `count` files; returns the records in each.

    Training shuffles within a buffer only, which does little for data that is sorted by class. One
    file at a time is held in memory.
    """
    generator = random.Random(seed)
    files = [_file_name(name, number, count) for number in range(count)]
    counts = dict.fromkeys(files, 0)
    writers = [tf.io.TFRecordWriter(os.path.join(folder, file)) for file in files]
    try:
        for record in records:
            number = generator.randrange(count)
            writers[number].write(record)
            counts[files[number]] += 1
    finally:
        for writer in writers:
            writer.close()
    for file in files:
        _shuffle(os.path.join(folder, file), generator)
    return _without_empty(folder, name, counts)


def write_in_order(
    records: Iterable[bytes], folder: str, name: str, per_shard: int
) -> dict[str, int]:
    """Writes records in their order, `per_shard` to a file; returns the records in each file."""
    counts: dict[str, int] = {}
    writer, file = None, ""
    try:
        for record in records:
            if writer is None or counts[file] == per_shard:
                if writer is not None:
                    writer.close()
                file = f"{name}-part{len(counts)}"
                writer, counts[file] = tf.io.TFRecordWriter(os.path.join(folder, file)), 0
            writer.write(record)
            counts[file] += 1
    finally:
        if writer is not None:
            writer.close()
    return _renamed(folder, name, counts)


def _shuffle(path: str, generator: random.Random) -> None:
    records: Sequence[bytes] = list(tf.data.TFRecordDataset(path).as_numpy_iterator())
    with tf.io.TFRecordWriter(path) as writer:
        for record in generator.sample(records, len(records)):
            writer.write(record)


def _without_empty(folder: str, name: str, counts: dict[str, int]) -> dict[str, int]:
    """Chance, or too few examples, may have left files empty, which readers take for broken."""
    if all(counts.values()):
        return counts
    for file, count in counts.items():
        if not count:
            os.remove(os.path.join(folder, file))
    kept = {}
    for number, (file, count) in enumerate((f, c) for f, c in counts.items() if c):
        kept[f"{name}-part{number}"] = count
        os.rename(os.path.join(folder, file), os.path.join(folder, f"{name}-part{number}"))
    return _renamed(folder, name, kept)


def _renamed(folder: str, name: str, counts: dict[str, int]) -> dict[str, int]:
    """Gives files their final names, which tell how many there are."""
    renamed = {}
    for number, (file, count) in enumerate(counts.items()):
        final = _file_name(name, number, len(counts))
        os.rename(os.path.join(folder, file), os.path.join(folder, final))
        renamed[final] = count
    return renamed


def _file_name(name: str, number: int, count: int) -> str:
    return f"{name}-{number:05d}-of-{count:05d}.tfrecord"
