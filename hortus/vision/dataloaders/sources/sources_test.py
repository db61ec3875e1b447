"""Tables, files of records and data in memory."""

import os
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from hortus.core import config_definitions as cfg
from hortus.vision.dataloaders.conftest import make_example, write_records
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources import record_files, tfds_records
from hortus.vision.dataloaders.sources.base import Shard, Shuffle, random_order, shuffle_in_blocks
from hortus.vision.dataloaders.sources.memory import InMemory
from hortus.vision.dataloaders.sources.record_files import FilePart, RecordFiles
from hortus.vision.dataloaders.sources.table import Table

SEED = tf.constant([1, 2], tf.int64)


ALL = Shard()


def loaded(source, shard=ALL, shuffle=None):
    return [
        tf.nest.map_structure(lambda value: value.numpy(), source.load(reference))
        for reference in source.one_pass(shard, shuffle)
    ]


# ---- order ----------------------------------------------------------------------------------


def test_all_orders_are_equally_likely():
    seeds = tf.data.Dataset.range(1200).map(lambda i: tf.stack([tf.constant(3, tf.int64), i]))
    orders = seeds.map(lambda seed: random_order(3, seed))
    counts = np.unique(list(orders.as_numpy_iterator()), axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert np.all(np.abs(counts - 200) < 4 * 200**0.5)


@pytest.mark.parametrize(("count", "buffer"), [(20, 8), (21, 8), (5, 100), (3, 1)])
def test_blocks_keep_every_element(count, buffer):
    dataset = tf.data.Dataset.from_tensor_slices({"a": tf.range(count), "b": -tf.range(count)})
    shuffled = list(shuffle_in_blocks(dataset, Shuffle(SEED, buffer)).as_numpy_iterator())
    assert sorted(each["a"] for each in shuffled) == list(range(count))
    assert all(each["a"] == -each["b"] for each in shuffled)


# ---- tables ---------------------------------------------------------------------------------


def test_a_table_gives_rows_and_reads_files(tmp_path):
    for i in range(3):
        (tmp_path / str(i)).write_bytes(b"content %d" % i)
    table = Table(
        {
            "image": [str(tmp_path / str(i)) for i in range(3)],
            "label": tf.constant([5, 6, 7]),
            "boxes": tf.ragged.constant([[1.0], [], [2.0, 3.0]]),
        },
        files=["image"],
    )
    rows = loaded(table)
    assert [row["image"] for row in rows] == [b"content 0", b"content 1", b"content 2"]
    assert [row["boxes"].tolist() for row in rows] == [[1.0], [], [2.0, 3.0]]
    assert table.info.num_examples == len(table) == 3
    assert table.where({"row": np.int64(1)}) == str(tmp_path / "1")


def test_hosts_share_a_table():
    table = Table({"x": tf.range(7)})
    shares = [[row["x"] for row in loaded(table, Shard(3, i))] for i in range(3)]
    assert shares == [[0, 3, 6], [1, 4], [2, 5]]
    shuffled = [row["x"] for row in loaded(table, Shard(3, 0), Shuffle(SEED, 1))]
    assert sorted(shuffled) == shares[0]
    with pytest.raises(DataError, match="7 examples are too few for host 8 of 9"):
        table.one_pass(Shard(9, 8), None)


def test_an_empty_file_is_told(tmp_path):
    (tmp_path / "a.jpg").touch()
    table = Table({"image": [str(tmp_path / "a.jpg")]}, files=["image"])
    assert table.hint({"row": 0}, "") == "; the file is empty"


# ---- memory ---------------------------------------------------------------------------------


def test_memory_holds_what_files_held(tmp_path):
    for i in range(4):
        (tmp_path / str(i)).write_bytes(b"%d" % i)
    table = Table(
        {
            "image": [str(tmp_path / str(i)) for i in range(4)],
            "boxes": tf.ragged.constant([[1.0], [], [2.0, 3.0], [4.0]]),
        },
        files=["image"],
    )
    held = InMemory(table, Shard(2, 1))
    for i in range(4):
        os.remove(tmp_path / str(i))
    rows = loaded(held)
    assert [row["image"] for row in rows] == [b"1", b"3"]
    assert [row["boxes"].tolist() for row in rows] == [[], [4.0]]
    assert held.where({"row": 1}) == str(tmp_path / "3")
    with pytest.raises(DataError, match="cannot be read into memory"):
        InMemory(table, ALL)


def test_memory_holds_records(tmp_path):
    path = write_records(tmp_path / "data", [b"a", b"b", b"c"])
    held = InMemory(RecordFiles([FilePart(path)]), ALL)
    os.remove(path)
    assert loaded(held) == [b"a", b"b", b"c"]
    assert held.where({"row": 2}) == f"{path}, record 2"


# ---- records --------------------------------------------------------------------------------


def test_parts_of_files(tmp_path):
    path = write_records(tmp_path / "data", [b"%d" % i for i in range(10)])
    source = RecordFiles([FilePart(path, 2, 3), FilePart(path, 8)])
    assert loaded(source) == [b"2", b"3", b"4", b"8", b"9"]
    references = source.one_pass(ALL, None).as_numpy_iterator()
    assert [source.where(each) for each in references] == [
        f"{path}, record {number}" for number in (2, 3, 4, 8, 9)
    ]


@pytest.mark.parametrize("hosts", [2, 3, 5])
def test_every_host_knows_where_its_records_are(tmp_path, hosts):
    files = [
        write_records(tmp_path / name, [f"{name}{i}".encode() for i in range(6)]) for name in "abc"
    ]
    source = RecordFiles([FilePart(path) for path in files])
    shuffle = Shuffle(tf.constant([1, 2], tf.int64), 4)
    places = {
        each["record"].decode(): source.where(each)
        for host in range(hosts)
        for each in source.one_pass(Shard(hosts, host), shuffle).as_numpy_iterator()
    }
    assert places == {
        f"{name}{i}": f"{path}, record {i}"
        for name, path in zip("abc", files, strict=True)
        for i in range(6)
    }


def test_no_records_are_an_error(tmp_path):
    path = write_records(tmp_path / "data", [b"0"])
    with pytest.raises(DataError, match="there are no records"):
        RecordFiles([FilePart(path, 0, 0)]).one_pass(ALL, None)


def test_features_of_a_record_are_shown_when_one_is_missing(tmp_path):
    record = make_example(image=b"x", label=3)
    source = RecordFiles([FilePart("f")])
    reason = "Feature: pixels (data type: string) is required but could not be found."
    assert source.hint({"record": record}, reason) == "; the record has the features image, label"
    assert source.hint({"record": record}, "something else") == ""


@pytest.mark.parametrize(
    ("compression", "content", "message"),
    [
        ("", b"", "is empty"),
        ("", b"\xff\xd8\xff\xe0 a picture of some sort", "not a TFRecord file"),
        ("", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x00", "tfrecord_compressed"),
        ("GZIP", b"\x03\x00\x00\x00\x00\x00\x00\x00 and so on and on", "set file_type to tfrecord"),
    ],
)
def test_wrong_files_are_told(tmp_path, compression, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        record_files.check_format(str(path), compression)
    assert str(path) in str(error.value)


def test_an_unreadable_file_is_told(tmp_path):
    with pytest.raises(DataError, match="missing: cannot be read"):
        record_files.check_format(str(tmp_path / "missing"), "")


# ---- TensorFlow Datasets --------------------------------------------------------------------


class _Features(dict):
    def deserialize_example(self, record, decoders=None):
        assert set(decoders) == {"image"}
        return tf.io.parse_single_example(
            record,
            {
                "image": tf.io.FixedLenFeature([], tf.string),
                "label": tf.io.FixedLenFeature([], tf.int64),
            },
        )


@pytest.fixture
def fake_tfds(tmp_path, monkeypatch):
    """A package with the part of the interface that is used; the real one is not needed here."""
    path = write_records(
        tmp_path / "data", [make_example(image=b"%d" % i, label=i) for i in range(10)]
    )
    part = types.SimpleNamespace(filename=path, skip=1, take=4)
    split = types.SimpleNamespace(file_instructions=[part], num_examples=4)
    features = _Features(label=types.SimpleNamespace(names=["a", "b"]), image=None)
    info = types.SimpleNamespace(
        features=features, splits={"train": split}, supervised_keys=("image", "label")
    )
    module = types.ModuleType("tensorflow_datasets")
    module.builder = lambda name, data_dir: types.SimpleNamespace(info=info)
    module.decode = types.SimpleNamespace(SkipDecoding=object)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", module)


def tfds_params(**settings):
    return cfg.DataConfig(
        {"tfds_name": "mnist", "tfds_split": "train", "tfds_skip_decoding_feature": "image"}
        | settings
    )


def test_a_set_of_tensorflow_datasets_is_read_by_its_files(fake_tfds):
    source = tfds_records.build(tfds_params(), "mnist", None)
    assert [int(row["label"]) for row in loaded(source)] == [1, 2, 3, 4]
    assert source.info.class_names == ("a", "b") and source.info.num_examples == 4
    pairs = tfds_records.build(tfds_params(tfds_as_supervised=True), "mnist", None)
    assert loaded(pairs)[0] == (b"1", 1)


def test_a_missing_split_is_told(fake_tfds):
    for split, message in (("", "tfds_split is not set"), ("test", "no split 'test', but train")):
        with pytest.raises(DataError, match=message):
            tfds_records.build(tfds_params(tfds_split=split), "mnist", None)


def test_a_missing_package_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(DataError, match=r"pip install 'hortus\[tfds\]'"):
        tfds_records.build(tfds_params(), "mnist", None)
