"""Files of records: TFRecord, plain or compressed."""

import concurrent.futures
import dataclasses
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from hortus.vision.dataloaders import file_types
from hortus.vision.dataloaders.dataset_info import DatasetInfo, read_info
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources import turns_of_files
from hortus.vision.dataloaders.sources.base import (
    Shard,
    Shuffle,
    Source,
    blocks_before,
    count_elements,
    random_order,
    shuffle_in_blocks,
)

COMPRESSIONS = file_types.RECORDS
"""Of files of records, by `file_type`."""
_GZIP = b"\x1f\x8b"
_PREFETCHED = 16
"""Records read ahead per file, where files are far away."""
_COUNTED_AT_ONCE = 16
_RECORDS_PER_FILE = 2**40
"""More than a file has: a record's place is the file's number times this, plus its own number."""


@dataclasses.dataclass(frozen=True)
class FilePart:
    """Some or all records of a file."""

    path: str
    skip: int = 0
    """Records to leave out at the begin."""
    take: int = -1
    """Records to read after that; -1 for all."""


class RecordFiles(Source):
    """Records of files, decoded by `decoder_fn`.

    Args:
      parts: the files.
      decoder_fn: a record -> a dict of tensors; None gives the records themselves.
      dataset_fn: a path -> the tf.data.Dataset of its records.
      cycle_length: files read in turn, when shuffling.
      block_length: records taken from a file before the next one's turn.
      info: what is known of the data; None looks beside the files.
      count_fn: a path -> the number of its records; None reads them.
    """

    def __init__(
        self,
        parts: Sequence[FilePart],
        decoder_fn: Callable[[tf.Tensor], Any] | None = None,
        dataset_fn: Callable[[tf.Tensor], tf.data.Dataset] = tf.data.TFRecordDataset,
        cycle_length: int | None = None,
        block_length: int = 1,
        info: DatasetInfo | None = None,
        count_fn: Callable[[str], int] | None = None,
    ):
        self.parts = list(parts)
        self._decoder_fn = decoder_fn
        self._dataset_fn = dataset_fn
        self._cycle_length = cycle_length or 10
        self._block_length = block_length
        self._info = info
        self._count_fn = count_fn or (lambda path: count_elements(dataset_fn(tf.constant(path))))
        self._counts: list[int] | None = None

    @property
    def info(self) -> DatasetInfo:
        if self._info is None:
            self._info = read_info(part.path for part in self.parts)
        return self._info

    @tf.autograph.experimental.do_not_convert
    def one_pass(self, shard: Shard, shuffle: Shuffle | None) -> tf.data.Dataset:
        return self.rest_of_pass(shard, shuffle, 0)

    @tf.autograph.experimental.do_not_convert
    def rest_of_pass(self, shard: Shard, shuffle: Shuffle | None, first: int) -> tf.data.Dataset:
        if all(part.take == 0 for part in self.parts):
            name = self.parts[0].path if self.parts else "no file"
            raise DataError(f"{name}: there are no records")
        numbers, share = self._share(shard)
        parts = [self.parts[number] for number in numbers]
        table = {
            "path": tf.constant([part.path for part in parts]),
            "begin": tf.constant([number * _RECORDS_PER_FILE for number in numbers], tf.int64),
            "skip": tf.constant([part.skip for part in parts], tf.int64),
            "take": tf.constant([part.take for part in parts], tf.int64),
        }
        cycle_length = 1
        if shuffle is not None:
            order = random_order(len(parts), tf.random.fold_in(shuffle.seed, tf.int64.max))
            table = {name: tf.gather(values, order) for name, values in table.items()}
            cycle_length = min(self._cycle_length, len(parts))
        before = first if shuffle is None else blocks_before(shuffle, first)
        if before:
            records = self._in_turns_after(before, table, share, cycle_length)
        else:
            records = self._in_turns(table, share, cycle_length)
        return records if shuffle is None else shuffle_in_blocks(records, shuffle, first)

    def _in_turns(
        self, table: dict[str, tf.Tensor], share: Shard, cycle_length: int
    ) -> tf.data.Dataset:
        """The records of the files in a table, a few files at a time."""
        return tf.data.Dataset.from_tensor_slices(table).interleave(
            lambda part: self._records(part, share),
            cycle_length=cycle_length,
            block_length=self._block_length,
        )

    def _in_turns_after(
        self, before: int, table: dict[str, tf.Tensor], share: Shard, cycle_length: int
    ) -> tf.data.Dataset:
        """The same without so many records, of which only those in open files are passed over."""
        counts = [
            self._count_in(int(begin) // _RECORDS_PER_FILE, share) for begin in table["begin"]
        ]
        standing = turns_of_files.after(before, counts, cycle_length, self._block_length)
        files = tf.constant([file for file, _ in standing.files], tf.int64)
        rest = {name: tf.gather(values, files) for name, values in table.items()}
        rest["done"] = tf.constant([read for _, read in standing.files], tf.int64)
        records = self._in_turns(rest, share, cycle_length)
        if standing.begun is None:
            return records
        file, read, left = standing.begun
        part = {name: values[file] for name, values in table.items()}
        part["done"] = tf.constant(read, tf.int64)
        return self._records(part, share).take(left).concatenate(records)

    def count(self, shard: Shard) -> int:
        numbers, share = self._share(shard)
        return sum(self._count_in(number, share) for number in numbers)

    def _count_in(self, number: int, share: Shard) -> int:
        """How many records of a file are in a share."""
        if self._counts is None:
            self._counts = self._count_records()
        return len(range(share.index, self._counts[number], share.count))

    def _count_records(self) -> list[int]:
        """The number of records of each file."""
        logging.getLogger(__name__).info(
            "counting the records of %d files, to find the place to go on from", len(self.parts)
        )
        # Most of the time the disk is waited for.
        with concurrent.futures.ThreadPoolExecutor(_COUNTED_AT_ONCE) as threads:
            counts = list(threads.map(lambda part: self._count_fn(part.path), self.parts))
        found = []
        for part, count in zip(self.parts, counts, strict=True):
            left = max(count - part.skip, 0)
            found.append(left if part.take < 0 else min(part.take, left))
        return found

    def _share(self, shard: Shard) -> tuple[range, Shard]:
        """The numbers of a host's files, and its share of the records of each of them."""
        numbers = range(len(self.parts))
        if len(numbers) >= shard.count:
            return numbers[shard.index :: shard.count], Shard()
        # Hosts have their files in different orders: within a file they agree on its records.
        return numbers, shard

    def _records(self, part: dict[str, tf.Tensor], share: Shard) -> tf.data.Dataset:
        records = self._dataset_fn(part["path"])
        if any(each.skip or each.take >= 0 for each in self.parts):
            records = records.skip(part["skip"]).take(part["take"])
        if any("://" in each.path for each in self.parts):
            records = records.prefetch(_PREFETCHED)

        # Zipped instead of mapped: a function call per record would double the time to read it. And
        # zipped with a range: a repeated path takes several times as long as reading the record.
        places = tf.data.Dataset.range(part["begin"] + part["skip"], tf.int64.max)
        references = tf.data.Dataset.zip({"place": places, "record": records})
        if share.count > 1:
            references = references.shard(share.count, share.index)
        return references.skip(part["done"]) if "done" in part else references

    def load(self, reference: dict[str, tf.Tensor]) -> Any:
        record = reference["record"]
        return record if self._decoder_fn is None else self._decoder_fn(record)

    def where(self, reference: dict[str, Any]) -> str:
        file, number = divmod(int(reference["place"]), _RECORDS_PER_FILE)
        return f"{self.parts[file].path}, record {number}"

    def hint(self, reference: dict[str, Any], reason: str) -> str:
        if "required but could not be found" not in reason:
            return ""
        example = tf.train.Example.FromString(bytes(reference["record"]))
        names = sorted(example.features.feature)
        return f"; the record has the features {', '.join(names) or '(none)'}"

    def find_damage(self) -> str:
        for part in self.parts:
            count, reason = count_readable(part.path, self._dataset_fn)
            if reason:
                return f"{part.path}, record {count}: {reason}"
        return ""


def check_format(path: str, compression: str) -> None:
    """Raises when the begin of a file shows that it holds no such records."""
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            begin, size = file.read(8), file.size()
    except tf.errors.OpError as error:
        raise DataError(f"{path}: cannot be read: {error.message}") from None
    if size == 0:
        raise DataError(f"{path} is empty")
    is_gzip = begin[:2] == _GZIP
    if compression and not is_gzip:
        raise DataError(f"{path} is not compressed with GZIP: set file_type to tfrecord")
    if compression:
        return
    # A record is its length (8 bytes), a checksum (4), the data and another checksum (4).
    if size < 16 or int.from_bytes(begin, "little") > size - 16:
        what = "is compressed with GZIP: set file_type to tfrecord_compressed"
        raise DataError(f"{path} {what if is_gzip else 'is not a TFRecord file, or is cut off'}")


def count_plain_records(path: str) -> int:
    """The number of records of an uncompressed TFRecord file, found by their lengths."""
    if "://" in path:
        return count_elements(tf.data.TFRecordDataset(path))
    count, place = 0, 0
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        while place < size:
            # A record is its length (8 bytes), a checksum (4), the data and another checksum (4).
            length = int.from_bytes(os.pread(file.fileno(), 8, place), "little")
            place, count = place + length + 16, count + 1
    return count


def count_readable(
    path: str, dataset_fn: Callable[[tf.Tensor], tf.data.Dataset] = tf.data.TFRecordDataset
) -> tuple[int, str]:
    """Number of records before the first that cannot be read, and what is wrong with that one."""
    count = 0
    try:
        for _ in dataset_fn(tf.constant(path)):
            count += 1
    except tf.errors.OpError as error:
        return count, error.message.split("}} ")[-1].split("[Op:")[0].strip()
    return count, ""


def without_damage(
    parts: Sequence[FilePart],
    dataset_fn: Callable[[tf.Tensor], tf.data.Dataset],
    on_damage: Callable[[str, str], None],
) -> list[FilePart]:
    """Leaves out what cannot be read. It reads all files once, to know.

    What follows a damaged record in its file is lost with it.

    Args:
      parts: the files.
      dataset_fn: a path -> the tf.data.Dataset of its records.
      on_damage: called with where and why.
    """
    logging.getLogger(__name__).info("looking for damage in %d files of records", len(parts))
    sound = []
    for part in parts:
        count, reason = count_readable(part.path, dataset_fn)
        if reason:
            on_damage(f"{part.path}, from record {count} on", reason)
            left = max(count - part.skip, 0)
            take = left if part.take < 0 else min(part.take, left)
            sound.append(dataclasses.replace(part, take=take))
        else:
            sound.append(part)
    return sound
