"""A user's module that keeps its annotations as text."""

from __future__ import annotations

import dataclasses
import typing
from typing import ClassVar, List, Optional

import pytest

from hortus import hyperparams

if typing.TYPE_CHECKING:
    from somewhere_else import Unknown


@dataclasses.dataclass
class Leaf(hyperparams.Config):
    size: int = 1
    kinds: ClassVar[List[str]] = ["elder"]


@dataclasses.dataclass
class Tree(hyperparams.Config):
    leaf: Leaf = Leaf()
    leaves: List[Leaf] = dataclasses.field(default_factory=list)
    parent: Optional[Tree] = None
    rate: float | None = None
    sizes: list[int] = [1]


@dataclasses.dataclass
class Odd(Tree):
    unknown: Optional[Unknown] = None
    named: Unknown = "elder"
    count: int = 3


def test_text_annotations_check_and_convert_like_others():
    tree = Tree()
    tree.override({"leaf": {"size": "2"}, "leaves": [{"size": 3}], "rate": 1, "sizes": [4]})
    assert tree.leaf == Leaf(size=2)
    assert tree.leaves == [Leaf(size=3)]
    assert tree.rate == 1.0
    with pytest.raises(hyperparams.ConfigError, match=r"leaf\.size: expected a whole number"):
        tree.override({"leaf": {"size": "big"}})


def test_a_config_can_contain_its_own_class():
    tree = Tree({"parent": {"parent": {"leaf": {"size": 5}}}})
    assert isinstance(tree.parent.parent, Tree)
    assert tree.get("parent.parent.leaf.size") == 5


def test_each_instance_has_its_own_default():
    first, second = Tree(), Tree()
    first.leaf.size = 9
    first.sizes.append(2)
    assert second.leaf.size == 1
    assert second.sizes == [1]


def test_a_name_that_cannot_be_resolved_leaves_the_other_fields_typed():
    odd = Odd()
    odd.override({"unknown": {"a": [1]}, "named": "oak", "parent": {"leaf": {"size": 2}}})
    assert odd.unknown.as_dict() == {"a": [1]}
    assert isinstance(odd.parent, Tree)
    with pytest.raises(hyperparams.ConfigError, match="count: expected a whole number"):
        odd.override({"count": "many"})


def test_a_class_inside_of_a_function_takes_types_from_its_defaults():
    @dataclasses.dataclass
    class Inner(hyperparams.Config):
        size: int = 1

    @dataclasses.dataclass
    class Outer(hyperparams.Config):
        inner: Inner = Inner()
        count: int = 2
        maybe: Optional[Inner] = None

    outer = Outer({"inner": {"size": 4}, "maybe": {"size": 5}})
    assert outer.inner == Inner(size=4)
    assert outer.maybe.size == 5
    with pytest.raises(hyperparams.ConfigError, match="count: expected a whole number"):
        outer.count = "x"
