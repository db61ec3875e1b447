import dataclasses
from typing import Any, Dict, List, Optional

from hortus.hyperparams.base_config import Config
from hortus.hyperparams.diff import ABSENT, diff, walk
from hortus.hyperparams.oneof import OneOfConfig
from hortus.hyperparams.overrides import parse_overrides


@dataclasses.dataclass
class Leaf(Config):
    size: int = 1
    rate: float = 0.5


@dataclasses.dataclass
class Choice(OneOfConfig):
    type: Optional[str] = "leaf"
    leaf: Leaf = Leaf()
    other: Leaf = Leaf(size=9)


@dataclasses.dataclass
class Tree(Config):
    name: str = "oak"
    leaf: Optional[Leaf] = Leaf()
    leaves: List[Leaf] = [Leaf(size=2), Leaf(size=3)]
    by_name: Dict[str, Leaf] = {"a": Leaf(size=4)}
    choice: Choice = Choice()
    mixed: Any = None
    sizes: List[int] = [1, 2]


def test_walk_gives_every_value_once_in_order():
    tree = Tree(mixed=[1, {"x": [{"y": 2}]}])
    assert [(leaf.path, leaf.value) for leaf in walk(tree)] == [
        ("name", "oak"),
        ("leaf.size", 1),
        ("leaf.rate", 0.5),
        ("leaves[0].size", 2),
        ("leaves[0].rate", 0.5),
        ("leaves[1].size", 3),
        ("leaves[1].rate", 0.5),
        ("by_name.a.size", 4),
        ("by_name.a.rate", 0.5),
        ("choice.type", "leaf"),
        ("choice.leaf.size", 1),
        ("choice.leaf.rate", 0.5),
        ("mixed[0]", 1),
        ("mixed[1].x[0].y", 2),
        ("sizes", [1, 2]),
    ]


def test_a_leaf_knows_its_owner_and_origin():
    tree = Tree()
    tree.override(parse_overrides("leaves[1].size=5", "--flag"))
    leaves = {leaf.path: leaf for leaf in walk(tree)}
    leaf = leaves["leaves[1].size"]
    assert leaf.owner is tree.leaves[1]
    assert leaf.name == "size"
    assert str(leaf.origin) == "--flag"
    assert str(leaves["name"].origin) == "default"


def test_equal_configs_do_not_differ():
    assert diff(Tree(), Tree()) == []


def test_a_difference_has_both_values_and_the_new_origin():
    new = Tree()
    new.override(parse_overrides("name=elm,leaf=null,sizes[0]=5", "--flag"))
    found = diff(new, Tree())
    assert [(one.path, one.old, one.new) for one in found] == [
        ("name", "oak", "elm"),
        ("leaf", ABSENT, None),
        ("sizes", [1, 2], [5, 2]),
        ("leaf.size", 1, ABSENT),
        ("leaf.rate", 0.5, ABSENT),
    ]
    assert str(found[0].origin) == "--flag"
    assert found[-1].origin is None
    assert repr(ABSENT) == "(absent)"


def test_another_branch_shows_as_such():
    new = Tree()
    new.override("choice.type=other")
    assert [one.path for one in diff(new, Tree())] == [
        "choice.type",
        "choice.other.size",
        "choice.other.rate",
        "choice.leaf.size",
        "choice.leaf.rate",
    ]
