import dataclasses
import warnings
from typing import Dict, List, Optional, Union

import pytest

from hortus.hyperparams import errors
from hortus.hyperparams.base_config import Config, inert
from hortus.hyperparams.merge import Merge
from hortus.hyperparams.origin import Origin


@dataclasses.dataclass
class Leaf(Config):
    size: int = 1
    rate: float = 0.5


@dataclasses.dataclass
class Tree(Config):
    name: str = "oak"
    leaf: Leaf = Leaf()
    maybe: Optional[Leaf] = None
    leaves: List[Leaf] = [Leaf(size=7)]
    by_name: Dict[str, Leaf] = {"a": Leaf(size=8)}
    either: Union[Leaf, List[int], None] = None
    old: int = inert(0, "gone")
    old_leaf: Leaf = inert(Leaf(), "fallen")


class File:
    """Says of every value that it stands on line 3."""

    def origin(self, path):
        return Origin("f.yaml", 3)


def merged(target, values, **kwargs):
    merge = Merge(Config, File(), **kwargs)
    merge.into(target, values)
    merge.commit()
    return target


def test_all_is_assigned_and_knows_its_origin():
    tree = merged(Tree(), {"name": "elm", "leaf": {"size": 2}, "maybe": {"rate": 1}})
    assert tree.as_dict()["leaf"] == {"size": 2, "rate": 0.5}
    assert tree.maybe == Leaf(rate=1.0)
    for path in ("name", "leaf", "leaf.size", "maybe", "maybe.rate"):
        assert str(tree.origin(path)) == "f.yaml:3"
    assert str(tree.origin("leaf.rate")) == "default"


@pytest.mark.parametrize(
    "bad",
    [
        {"leaf": {"size": "big"}},
        {"nope": 1},
        {"leaf": {"nope": 1}},
        {"leaves": [{"size": 1}, {"nope": 1}]},
        {"by_name": {"a": {"size": None}}},
        {"either": {"nope": 1}},
        {"maybe": 5},
        {3: 4},
    ],
)
def test_one_problem_and_nothing_is_assigned(bad):
    tree = Tree()
    before = tree.as_dict()
    good = {"name": "elm", "leaf": {"rate": 1}, "leaves": [{"size": 5}], "by_name": {"b": {}}}
    # The good ones come first and last, so that neither order lets half of it through.
    for values in ({**good, **bad}, {**bad, **{k: v for k, v in good.items() if k not in bad}}):
        with pytest.raises(errors.ConfigError, match=r"\(f\.yaml:3\)"):
            merged(tree, values)
        assert tree.as_dict() == before
        assert str(tree.origin("name")) == "default"


def test_every_problem_is_reported_at_once():
    with pytest.raises(errors.ConfigError) as caught:
        merged(Tree(), {"nam": 1, "leaf": {"size": "big", "rat": 2}, "leaves": [5], "maybe": []})
    assert str(caught.value).splitlines() == [
        "5 problems in the config:",
        "  - nam (f.yaml:3): unknown key 'nam' of Tree. Did you mean name or by_name?",
        "  - leaf.size (f.yaml:3): expected a whole number, got 'big' (str)",
        "  - leaf.rat (f.yaml:3): unknown key 'rat' of Leaf. Did you mean rate?",
        "  - leaves[0] (f.yaml:3): expected a Leaf (a mapping of its fields), got 5 (int)",
        "  - maybe (f.yaml:3): expected a Leaf (a mapping of its fields) or null, got [] (list)",
    ]


def test_a_list_is_replaced_and_a_mapping_is_merged():
    tree = merged(Tree(), {"leaves": [{}], "by_name": {"b": {"size": 2}, "a": {"rate": 1}}})
    assert tree.leaves == [Leaf()]
    assert tree.by_name == {"a": Leaf(size=8, rate=1.0), "b": Leaf(size=2)}


def test_null_drops_a_part():
    assert merged(Tree(), {"leaf": None}).leaf is None


def test_a_config_of_the_right_class_is_taken_as_it_is():
    leaf = Leaf(size=3)
    assert merged(Tree(), {"leaf": leaf}).leaf is leaf
    with pytest.raises(errors.WrongTypeError, match="expected a Leaf, got a Tree"):
        merged(Tree(), {"leaf": Tree()})


def test_a_locked_config_cannot_be_merged_into():
    tree = Tree()
    tree.lock()
    with pytest.raises(errors.LockedError, match="the config is locked"):
        merged(tree, {"name": "elm"})


# ---- keys that are not there ----------------------------------------------------------------


def test_a_key_is_added_with_a_warning_when_not_strict():
    with pytest.warns(errors.ConfigWarning) as caught:
        tree = merged(Tree(), {"leaf": {"shade": {"deep": 1}}}, is_strict=False)
    assert tree.leaf.shade.deep == 1
    assert [str(one.message) for one in caught] == [
        "leaf.shade (f.yaml:3): 'shade' is no field of Leaf; added"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        merged(tree, {"leaf": {"shade": 2}})  # it is known by now
    assert tree.leaf.shade == 2


def test_an_open_config_is_open_while_it_is_new():
    config = Config({"a": {"b": 1}, "my-set": 2, "with space": 3})
    assert config.as_dict() == {"a": {"b": 1}, "my-set": 2, "with space": 3}
    with pytest.raises(errors.UnknownKeyError, match=r"a\.c \(f\.yaml:3\): unknown key"):
        merged(config, {"a": {"c": 1}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # to grow is the nature of an open config
        merged(config, {"a": {"c": 1}}, is_strict=False)
    assert config.a.c == 1


@pytest.mark.parametrize("key", ["", "_locked", "__class__", 3, None, True, (1, 2)])
def test_a_key_that_cannot_be_an_attribute_is_an_error(key):
    with pytest.raises(errors.UnknownKeyError, match="is not a possible key of Tree"):
        merged(Tree(), {key: 1}, is_strict=False)


@pytest.mark.parametrize("key", ["override", "as_dict", "restrictions", "validate"])
def test_the_name_of_a_method_cannot_be_added(key):
    with pytest.raises(errors.UnknownKeyError, match="reserved"):
        Config({key: 1})
    with pytest.raises(errors.UnknownKeyError, match="reserved"):
        merged(Tree(), {key: 1}, is_strict=False)


# ---- warnings -------------------------------------------------------------------------------


def test_an_inert_field_warns_when_it_is_changed_and_only_then():
    tree = Tree()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        merged(tree, {"old": 0, "old_leaf": {"size": 1}})
        Tree(old=3)  # a recipe may spell it out
    with pytest.warns(errors.ConfigWarning, match=r"^old \(f\.yaml:3\) has no effect: gone$"):
        merged(tree, {"old": 1})
    assert tree.old == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        merged(tree, {"old": 1})


def test_a_change_inside_of_an_inert_part_warns():
    with pytest.warns(errors.ConfigWarning) as caught:
        tree = merged(Tree(), {"old_leaf": {"size": 2, "rate": 0.1}})
    assert [str(one.message) for one in caught] == ["old_leaf (f.yaml:3) has no effect: fallen"]
    assert tree.old_leaf.size == 2


def test_a_merge_that_fails_gives_no_warnings(recwarn):
    with pytest.raises(errors.ConfigError):
        merged(Tree(), {"old": 1, "nope": 1})
    assert not recwarn


def test_a_warning_that_is_an_error_leaves_nothing_half_done():
    tree = Tree()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(errors.ConfigWarning):
            merged(tree, {"name": "elm", "old": 1})
    assert tree == Tree()


def test_a_warning_points_at_the_line_of_the_caller():
    tree = Tree()
    with pytest.warns(errors.ConfigWarning) as caught:
        tree.old = 5
    assert caught[0].filename == __file__
    with pytest.warns(errors.ConfigWarning) as caught:
        tree.override({"old": 6})
    assert caught[0].filename == __file__
