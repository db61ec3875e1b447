import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.configs import common
from hortus.vision.dataloaders.combination_reader import CombinationDatasetInputReader
from hortus.vision.dataloaders.conftest import write_records
from hortus.vision.dataloaders.errors import DataError


def to_number(record):
    return tf.strings.to_number(record, tf.int64)


@pytest.fixture
def make(tmp_path):
    ordinary = write_records(tmp_path / "a", [b"%d" % n for n in range(20)])
    made = write_records(tmp_path / "b", [b"%d" % n for n in range(100, 130)])

    def make(size=12, ratio=2.0):
        params = common.DataConfig(
            {"input_path": ordinary, "global_batch_size": size, "is_training": True, "seed": 1}
        )
        pseudo = common.PseudoLabelDataConfig(
            {"input_path": made, "data_ratio": ratio, "seed": 2, "global_batch_size": 1}
        )
        return CombinationDatasetInputReader(params, pseudo, decoder_fn=to_number)

    return make


def test_every_part_of_a_batch_has_its_share(make):
    batches = list(make().read().take(5).as_numpy_iterator())
    for batch in batches:
        is_made = batch >= 100
        assert is_made.sum() == 8
        # A third of the batch, as a replica would get it, has the same mixture.
        assert is_made.reshape(3, 4).sum(axis=1).tolist() in ([3, 2, 3], [2, 3, 3], [3, 3, 2])
    seen = np.concatenate(batches)
    assert sorted(seen[seen < 100]) == list(range(20))  # 4 of each of 5 batches: one pass


def test_the_position_can_be_saved(make):
    dataset = make().read()
    expected = list(dataset.take(7).as_numpy_iterator())[3:]
    again = make().read().start_at(dataset.position(3))
    np.testing.assert_array_equal(list(again.take(4).as_numpy_iterator()), expected)


def test_a_batch_that_cannot_be_shared_is_an_error(make):
    with pytest.raises(DataError, match="a batch of 1 examples cannot be shared"):
        make(size=1).read()
    with pytest.raises(DataError, match="larger global_batch_size or another data_ratio"):
        make(size=4, ratio=100.0).read()
