import types

import pytest

from hortus.optimization.name_patterns import NamePatterns

KERNEL = types.SimpleNamespace(path="backbone/stem/kernel", name="kernel")
BIAS = types.SimpleNamespace(path="backbone/stem/bias", name="bias")


@pytest.mark.parametrize(
    "patterns",
    ["kernel", "^kernel$", "stem/k", "kernel:0$", ".*(kernel|weight):0$", ["norm", "kernel"]],
)
def test_found_in_the_kernel_only(patterns):
    assert NamePatterns(patterns).match(KERNEL)
    assert not NamePatterns(patterns).match(BIAS)


@pytest.mark.parametrize("patterns", [None, [], ""])
def test_nothing_matches_nothing(patterns):
    found = NamePatterns(patterns)
    assert bool(found) == (patterns == "")
    assert found.match(KERNEL) == (patterns == "")


def test_a_text_is_one_expression_and_not_its_letters():
    assert not NamePatterns("bk").match(BIAS)


def test_what_is_no_expression_is_said():
    with pytest.raises(ValueError, match=r"'\*' is not a regular expression"):
        NamePatterns(["bias", "*"])


def test_a_variable_without_path():
    assert NamePatterns("kernel:0").match(types.SimpleNamespace(name="dense/kernel:0"))
