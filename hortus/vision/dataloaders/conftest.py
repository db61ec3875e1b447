"""Small data for the tests of this folder."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Host:
    """An input context: one host of several."""

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0

    def get_per_replica_batch_size(self, global_batch_size):
        return global_batch_size // self.num_input_pipelines


def make_example(**features):
    """A serialised tf.train.Example of bytes and lists of integers; `__` stands for `/`."""
    kinds = {}
    for name, value in features.items():
        if isinstance(value, bytes):
            kind = tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        else:
            values = np.atleast_1d(value).astype(int).tolist()
            kind = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        kinds[name.replace("__", "/")] = kind
    return tf.train.Example(features=tf.train.Features(feature=kinds)).SerializeToString()


def write_records(path, records, compression=""):
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def make_image(number, size=(24, 32)):
    """Noise, different for each number."""
    noise = np.random.default_rng(number).integers(0, 255, [*size, 3])
    return noise.astype(np.uint8)


@pytest.fixture
def number_files(tmp_path):
    """Four files of 25 records each: the texts 0 to 99."""
    for i in range(4):
        write_records(tmp_path / f"numbers-{i}", [b"%d" % n for n in range(i * 25, (i + 1) * 25)])
    return str(tmp_path / "numbers-*")


@pytest.fixture
def image_folder(tmp_path):
    """Three classes of 6, 5 and 4 images, of several kinds."""
    encoders = {".jpg": tf.io.encode_jpeg, ".png": tf.io.encode_png}
    number = 0
    for name, count in (("cat", 6), ("ant", 5), ("bee", 4)):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(count):
            ending = ".jpg" if i % 2 else ".png"
            path = tmp_path / "images" / name / f"{i}{ending}"
            path.write_bytes(encoders[ending](make_image(number)).numpy())
            number += 1
    return tmp_path / "images"
