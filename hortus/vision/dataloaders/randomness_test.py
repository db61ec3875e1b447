import numpy as np
import tensorflow as tf

from hortus.vision.dataloaders.randomness import Rng, make_seed


def draws(seed):
    rng = Rng(seed)
    return [
        rng.uniform(),
        rng.uniform(),
        rng.integer(0, 1000),
        rng.normal(),
        Rng(rng.seed()).uniform(),
    ]


def test_a_seed_determines_all_numbers_and_no_two_are_equal():
    first, again, other = draws([1, 2]), draws([1, 2]), draws([1, 3])
    assert [float(x) for x in first] == [float(x) for x in again]
    assert all(float(a) != float(b) for a, b in zip(first, other, strict=True))
    assert len({float(x) for x in first}) == len(first)


def test_without_a_seed_every_generator_is_new():
    assert float(Rng().uniform()) != float(Rng().uniform())
    assert make_seed().shape == [2] and make_seed().dtype == tf.int64


def test_neighbouring_seeds_give_independent_numbers():
    # Examples have the seeds (s, 0), (s, 1), ...: 4 standard errors of 2000 numbers.
    examples = tf.data.Dataset.range(2000).map(
        lambda i: Rng([tf.constant(7, tf.int64), i]).uniform()
    )
    values = np.array(list(examples.as_numpy_iterator()))
    assert abs(values.mean() - 0.5) < 4 * (1 / 12 / 2000) ** 0.5
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 4 / 2000**0.5


def test_ranges():
    rng = Rng([3, 4])
    values = rng.uniform(-2.0, 3.0, [1000]).numpy()
    assert -2 <= values.min() < -1.9 and 2.9 < values.max() < 3
    assert {int(Rng([0, i]).integer(2, 5)) for i in range(60)} == {2, 3, 4}
    assert {float(Rng([0, i]).sign()) for i in range(20)} == {-1.0, 1.0}
    assert not rng.chance(0.0) and rng.chance(1.0)
