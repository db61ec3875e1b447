import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.dataloaders import mix
from hortus.vision.dataloaders.errors import DataError

SEED = tf.constant([1, 2], tf.int64)


def read(turns, first, count):
    return np.array(list(turns.read(first).take(count).as_numpy_iterator()))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(mix, "_BLOCK", 64)


def test_turns_have_their_weights():
    found = read(mix.Turns([3, 1, 0], SEED), 0, 2000)
    assert set(found) == {0, 1}
    assert abs(np.mean(found == 0) - 0.75) < 4 * (0.75 * 0.25 / 2000) ** 0.5  # four deviations


@pytest.mark.parametrize("first", [0, 1, 63, 64, 65, 200])
def test_turns_begin_anywhere_and_know_what_came_before(first):
    turns = mix.Turns([0.5, 0.2, 0.3], SEED)
    whole = read(turns, 0, 300)
    np.testing.assert_array_equal(read(turns, first, 300 - first), whole[first:])
    expected = np.bincount(whole[:first], minlength=3).tolist()
    assert turns.count(first) == expected
    turns.count(299)
    assert turns.count(first) == expected  # asked again, from what it knows


def test_a_seed_determines_the_turns():
    first, again, other = (
        read(mix.Turns([1, 1], tf.constant([1, second], tf.int64)), 0, 100) for second in (2, 2, 3)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("weights", [[0, 0], [1, -1], [1, float("nan")], [1, float("inf")]])
def test_weights_without_meaning_are_an_error(weights):
    with pytest.raises(DataError, match="expected numbers from 0 on"):
        mix.Turns(weights, SEED)
