import pytest

from hortus.vision.modeling.layers.round_filters import make_divisible, round_filters


@pytest.mark.parametrize(
    ("value", "divisor", "expected"),
    [(32, 8, 32), (33, 8, 32), (36, 8, 40), (3, 8, 8), (11, 8, 16)],
)
def test_widths_are_multiples_and_never_much_smaller(value, divisor, expected):
    assert make_divisible(value, divisor) == expected


def test_without_protection_the_nearest_multiple_counts():
    assert make_divisible(11, 8, round_down_protect=False) == 8


def test_no_multiplier_changes_nothing():
    assert round_filters(33, None) == 33
    assert round_filters(32, 1.5) == 48
