import keras
import numpy as np
import pytest

from hortus.vision.ops import sampling

# 4 positives, 5 negatives and 1 that is neither; then 1, 8 and 1.
POSITIVE = np.array([[1, 1, 1, 1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]], bool)
NEGATIVE = np.array([[0, 0, 0, 0, 1, 1, 1, 1, 1, 0], [0, 1, 1, 1, 1, 1, 1, 1, 1, 0]], bool)


@pytest.mark.parametrize(
    ("size", "fraction", "positives", "negatives"),
    [
        (6, 0.5, [3, 1], [3, 5]),
        (6, 0.0, [0, 0], [5, 6]),
        (6, 1.0, [4, 1], [2, 5]),
        (99, 0.5, [4, 1], [5, 8]),
        (1, 0.5, [0, 0], [1, 1]),
    ],
)
def test_counts(size, fraction, positives, negatives):
    mask = np.array(sampling.balanced_mask(POSITIVE, NEGATIVE, size, fraction, seed=0))
    assert (mask & POSITIVE).sum(1).tolist() == positives
    assert (mask & NEGATIVE).sum(1).tolist() == negatives
    assert not (mask & ~POSITIVE & ~NEGATIVE).any()
    sample = sampling.balanced(POSITIVE, NEGATIVE, size, fraction, seed=0)
    is_chosen, indices = map(np.array, sample[::-1])
    for row, chosen, rows in zip(mask, is_chosen, indices, strict=True):
        assert rows.shape == (min(size, 10),)
        assert sorted(rows[chosen]) == np.flatnonzero(row).tolist()
        assert not np.diff(chosen.astype(int)).max(initial=0) > 0  # the chosen come first


def test_choice_is_random_and_reproducible():
    def draw(seed):
        return np.array(sampling.balanced_mask(POSITIVE, NEGATIVE, 4, 0.5, seed=seed)).tolist()

    assert draw(1) == draw(1)
    generator = keras.random.SeedGenerator(3)
    assert len({str(draw(generator)) for _ in range(8)}) > 2


def test_each_row_has_the_same_chance():
    positive, negative = np.repeat(POSITIVE[:1], 3000, 0), np.repeat(NEGATIVE[:1], 3000, 0)
    shares = np.array(sampling.balanced_mask(positive, negative, 4, 0.5, seed=0)).mean(0)
    # 2 of 4 positives and 2 of 5 negatives; the standard deviation is 0.009
    np.testing.assert_allclose(shares, [0.5] * 4 + [0.4] * 5 + [0], atol=0.045)
