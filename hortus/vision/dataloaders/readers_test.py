import pytest
import tensorflow as tf

from hortus.vision.configs import common
from hortus.vision.dataloaders.conftest import write_records
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.readers import Readers


def to_number(record):
    return tf.strings.to_number(record, tf.int64)


@pytest.fixture
def make(tmp_path):
    def make(name, records, **settings):
        path = write_records(tmp_path / name, records)
        params = common.DataConfig(
            {"input_path": path, "global_batch_size": 1, "is_training": False, **settings}
        )
        return InputReader(params, decoder_fn=to_number)

    return make


def test_the_reader_to_blame_is_found(make, tmp_path):
    readers = Readers()
    sound = readers.add("validation_data", make("a", [b"1", b"2"]))
    broken = readers.add("train_data", make("b", [b"1", b"x"]))
    assert len(list(sound.read())) == 2
    with pytest.raises(tf.errors.OpError) as caught:
        list(broken.read())
    error = readers.error_for(caught.value)
    assert str(error).startswith(f"train_data: {tmp_path / 'b'}, record 1: ")
    assert "task.train_data.skip_bad_records=true" in str(error)
    assert readers.error_for(ValueError("other")) is None


def test_what_was_left_out_is_told_by_name(make):
    readers = Readers()
    one = readers.add("train_data", make("a", [b"1", b"x", b"3"], skip_bad_records=True))
    readers.add("validation_data", make("b", [b"1"]))
    assert len(list(one.read())) == 2
    (note,) = readers.notes()
    assert note.startswith("train_data: 1 example was left out:")
