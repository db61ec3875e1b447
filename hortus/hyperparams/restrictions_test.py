import dataclasses
from typing import Optional

import pytest

from hortus.hyperparams import restrictions
from hortus.hyperparams.base_config import Config
from hortus.hyperparams.oneof import OneOfConfig


@dataclasses.dataclass
class Leaf(Config):
    size: int = 1


@dataclasses.dataclass
class Choice(OneOfConfig):
    type: Optional[str] = "leaf"
    leaf: Leaf = Leaf()
    other: Leaf = Leaf()


@dataclasses.dataclass
class Tree(Config):
    a: int = 1
    b: int = 2
    word: str = "oak"
    level: Optional[int] = None
    leaf: Optional[Leaf] = Leaf()
    part: Optional[Leaf] = None
    choice: Choice = Choice()
    flag: bool = True


@pytest.mark.parametrize(
    "rule",
    [
        "a < b",
        "a<b",
        " a <= b ",
        "b > a",
        "b >= 2",
        "a == leaf.size",
        "a != b",
        "a == 1",
        "a < 1.5",
        "a < 1e3",
        "a > -1",
        "level == None",
        "level == null",
        "a != None",
        "word == 'oak'",
        'word != "elm"',
        "flag == True",
        "part == None",
        "choice.leaf.size == 1",
    ],
)
def test_a_rule_that_holds(rule):
    assert restrictions.violation(rule, Tree()) is None


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("a > b", "a is 1 (default) and b is 2 (default)"),
        ("a == 2", "a is 1 (default)"),
        ("level != None", "level is None (default)"),
        ("level < 3", "level is None (default)"),
        ("word < 3", "word is 'oak' (default)"),
        ("word == 'elm'", "word is 'oak' (default)"),
        ("leaf.size > a", "leaf.size is 1 (default) and a is 1 (default)"),
        ("flag == False", "flag is True (default)"),
    ],
)
def test_a_broken_rule_names_values_and_origins(rule, words):
    assert restrictions.violation(rule, Tree()) == f"{rule!r} does not hold: {words}"


@pytest.mark.parametrize("rule", ["part.size > 100", "a > part.size", "choice.other.size == 9"])
def test_a_rule_about_a_part_that_is_not_used_holds(rule):
    assert restrictions.violation(rule, Tree()) is None


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("a ~ b", "expected 'a.b RELATION c.d', with one of ==, !=, <=, >=, <, >"),
        ("a", "expected 'a.b RELATION c.d'"),
        ("", "expected 'a.b RELATION c.d'"),
        ("leaf.siz == 1", "leaf.siz names nothing in the config. Did you mean size?"),
        ("a.x == b", "a.x names nothing in the config"),
        ("leef.size == 1", "leef.size names nothing in the config; quote it if it is text"),
        ("word == oak", "oak names nothing in the config; quote it if it is text"),
    ],
)
def test_a_rule_that_says_nothing_is_a_problem_too(rule, words):
    assert words in restrictions.violation(rule, Tree())


def test_a_function_returns_a_message_or_whether_it_holds():
    def leaves_are_small(tree):
        return tree.leaf.size < 5

    assert restrictions.violation(leaves_are_small, Tree()) is None
    found = restrictions.violation(leaves_are_small, Tree(leaf=Leaf(size=9)))
    assert found == "the restriction leaves_are_small does not hold"
    assert restrictions.violation(lambda tree: f"a is {tree.a}", Tree()) == "a is 1"
    assert restrictions.violation(lambda tree: None, Tree()) is None
    assert restrictions.violation(lambda tree: "", Tree()) is None
