import pytest

from hortus.vision.weights.rules import Rules, fill


def test_numbers_are_counted_on():
    rules = Rules({"norm{i}_level{l}": "_norms/{l-min}/{i-1}", "conv{i}": "_conv_{i+1}"})
    assert rules("norm1_level5/gamma", {"min": 3}) == "_norms/2/0/gamma"
    assert rules("conv9/kernel") == "_conv_10/kernel"


def test_a_pattern_ends_at_a_slash():
    rules = Rules({"conv": "_conv0", "conv_norm": "_norm0"})
    assert rules("conv_norm/gamma") == "_norm0/gamma"
    assert rules("conv") == "_conv0"
    assert rules("convolution/kernel") is None


def test_words_are_kept():
    rules = Rules({"towers/attribute_{a:word}/convs/{i}": "_att_convs/{a}/{i}"})
    assert rules("towers/attribute_colour_of/convs/3/bias") == "_att_convs/colour_of/3/bias"


def test_the_first_pattern_that_fits_counts():
    rules = Rules({"block1": "stem", "block{i}": "blocks.{i-2}"})
    assert rules("block1") == "stem"
    assert rules("block2") == "blocks.0"


def test_an_unknown_field_is_a_mistake_in_the_table():
    with pytest.raises(KeyError):
        fill("{missing}", {"i": 1})
