import dataclasses
from typing import Optional

import pytest

from hortus.hyperparams import errors
from hortus.hyperparams.base_config import Config
from hortus.hyperparams.oneof import OneOfConfig


@dataclasses.dataclass
class Oak(Config):
    age: int = 100

    def check(self):
        if self.age < 0:
            yield "age must not be negative"


@dataclasses.dataclass
class Elm(Config):
    height: float = 20.0


@dataclasses.dataclass
class Tree(OneOfConfig):
    type: Optional[str] = "oak"
    oak: Oak = Oak()
    elm: Elm = Elm()


def test_get_returns_the_chosen_branch():
    tree = Tree()
    assert tree.get() is tree.oak
    tree.type = "elm"
    assert tree.get() is tree.elm
    tree.type = None
    assert tree.get() is None
    assert tree.get("oak.age") == 100
    assert tree.get("pine.age", 5) == 5


def test_only_the_chosen_branch_is_exported_and_compared():
    tree = Tree()
    tree.elm.height = 5
    assert tree.as_dict() == {"type": "oak", "oak": {"age": 100}}
    assert tree == Tree()
    assert Tree(type=None).as_dict() == {"type": None}


def test_a_branch_can_be_set_before_it_is_chosen():
    tree = Tree()
    tree.override({"elm": {"height": 3}})
    tree.override("type=elm")
    assert tree.get().height == 3.0


@pytest.mark.parametrize(
    "change", [lambda t: setattr(t, "type", "elmm"), lambda t: t.override("type=elmm")]
)
def test_an_unknown_choice_is_an_error_where_it_is_made(change):
    tree = Tree()
    with pytest.raises(errors.ConfigError, match=r"'elmm' is no choice of Tree\. Did you mean elm"):
        change(tree)
    assert tree.type == "oak"
    with pytest.raises(errors.ConfigError, match=r"'pine' is no choice of Tree\. Known: oak, elm"):
        Tree(type="pine")


def test_a_subclass_adds_a_choice():
    @dataclasses.dataclass
    class Pine(Config):
        cones: int = 3

    @dataclasses.dataclass
    class MoreTrees(Tree):
        pine: Pine = Pine()

    tree = MoreTrees({"type": "pine", "pine": {"cones": 4}})
    assert tree.get() == Pine(cones=4)
    assert MoreTrees.choices() == ["oak", "elm", "pine"]


def test_a_choice_can_be_added_together_with_its_branch():
    tree = Tree()
    with pytest.warns(errors.ConfigWarning, match="pine"):
        tree.override({"type": "pine", "pine": {"cones": 3}}, is_strict=False)
    assert tree.get().cones == 3
    assert tree.as_dict() == {"type": "pine", "pine": {"cones": 3}}


def test_a_branch_that_is_not_chosen_is_neither_checked_nor_restricted():
    tree = Tree(type="elm", restrictions=["oak.age > 1000"])
    tree.oak.age = -5
    tree.validate()
    tree.type = "oak"
    with pytest.raises(errors.ConfigError) as caught:
        tree.validate()
    assert len(caught.value.problems) == 2


def test_lock_holds_in_every_branch():
    tree = Tree()
    tree.lock()
    with pytest.raises(errors.LockedError):
        tree.elm.height = 3


def test_a_chosen_branch_can_be_null():
    tree = Tree({"oak": None})
    assert tree.get() is None
    tree.validate()
    assert tree.as_dict() == {"type": "oak", "oak": None}
