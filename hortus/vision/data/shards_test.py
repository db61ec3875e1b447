import itertools

import pytest
import tensorflow as tf

from hortus.vision.data import shards

RECORDS = [b"%d" % number for number in range(20)]


def read(folder, counts):
    found = []
    for name, count in counts.items():
        records = list(tf.data.TFRecordDataset(str(folder / name)).as_numpy_iterator())
        assert len(records) == count
        found.append(records)
    assert sorted(path.name for path in folder.iterdir()) == sorted(counts)
    return found


def chained(parts):
    return list(itertools.chain.from_iterable(parts))


def test_in_order(tmp_path):
    counts = shards.write_in_order(RECORDS, str(tmp_path), "val", 8)
    assert list(counts.items()) == [
        ("val-00000-of-00003.tfrecord", 8),
        ("val-00001-of-00003.tfrecord", 8),
        ("val-00002-of-00003.tfrecord", 4),
    ]
    assert chained(read(tmp_path, counts)) == RECORDS


def test_shuffled(tmp_path):
    found = read(tmp_path, shards.write_shuffled(RECORDS, str(tmp_path), "train", 2))
    assert sorted(chained(found)) == sorted(RECORDS)
    for part in found:
        numbers = [int(record) for record in part]
        assert numbers != sorted(numbers)


def test_files_that_would_be_empty_are_left_out(tmp_path):
    counts = shards.write_shuffled(RECORDS[:2], str(tmp_path), "train", 6)
    assert sum(counts.values()) == 2 and all(counts.values())
    assert all(name.endswith(f"-of-{len(counts):05d}.tfrecord") for name in counts)
    assert sorted(chained(read(tmp_path, counts))) == RECORDS[:2]


def test_nothing_to_write(tmp_path):
    assert shards.write_in_order([], str(tmp_path), "val", 8) == {}
    assert shards.write_shuffled([], str(tmp_path), "train", 2) == {}


@pytest.mark.parametrize(
    ("examples", "count"), [(1, 1), (1000, 1), (1001, 2), (10**7, 128), (None, 16), (0, 16)]
)
def test_how_many(examples, count):
    assert shards.number_of_shards(examples) == count
