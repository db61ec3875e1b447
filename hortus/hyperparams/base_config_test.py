import copy
import dataclasses
import enum
import pathlib
import pickle
import warnings
from typing import Any, Dict, List, Optional, Tuple, Union

import pytest

from hortus.hyperparams import errors
from hortus.hyperparams.base_config import Config, inert
from hortus.hyperparams.bounds import AnyFloat
from hortus.hyperparams.origin import Origin
from hortus.hyperparams.overrides import parse_overrides


@dataclasses.dataclass
class Leaf(Config):
    size: int = 1
    rate: float = 0.5

    def check(self):
        if self.size < 0:
            yield f"size must not be negative, got {self.size}"
        if self.rate > self.size:
            yield "the rate is above the size"


@dataclasses.dataclass
class Tree(Config):
    name: str = "oak"
    made: Leaf = dataclasses.field(default_factory=Leaf)
    given: Leaf = Leaf(size=2)
    maybe: Optional[Leaf] = None
    leaves: List[Leaf] = [Leaf(size=3)]
    by_name: Dict[str, Leaf] = {}
    sizes: List[int] = dataclasses.field(default_factory=lambda: [1, 2])
    pair: Tuple[int, AnyFloat] = (1, 0.5)
    either: Union[str, List[str]] = ""


# ---- defaults -------------------------------------------------------------------------------


def test_every_style_of_default_gives_each_instance_its_own():
    first, second = Tree(), Tree()
    first.made.size = first.given.size = first.leaves[0].size = 9
    first.sizes.append(3)
    first.by_name["a"] = Leaf()
    assert second == Tree()
    assert (second.made.size, second.given.size, second.leaves[0].size) == (1, 2, 3)


def test_a_field_object_with_a_mutable_default_works_too():
    @dataclasses.dataclass
    class Bush(Config):
        leaf: Leaf = dataclasses.field(default=Leaf(size=4), metadata={"note": "x"})

    assert Bush().leaf.size == 4
    assert Bush().leaf is not Bush().leaf
    assert dataclasses.fields(Bush)[0].metadata == {"note": "x"}


def test_a_subclass_changes_a_default_and_adds_fields():
    @dataclasses.dataclass
    class Palm(Tree):
        name: str = "palm"
        coconuts: int = 5

    assert Palm().as_dict() == {**Tree().as_dict(), "name": "palm", "coconuts": 5}


def test_a_new_default_without_an_annotation_is_an_error():
    # Dataclasses would ignore it without a word.
    with pytest.raises(errors.ConfigError, match=r"Palm\.name: .* needs the annotation"):

        @dataclasses.dataclass
        class Palm(Tree):
            name = "palm"


@pytest.mark.parametrize("name", ["override", "get", "check", "default_params", "_locked"])
def test_a_field_cannot_take_the_name_of_a_method(name):
    with pytest.raises(errors.ConfigError, match=f"{name}: a field cannot be named like a method"):
        type("Palm", (Config,), {"__annotations__": {name: int}, name: 1})


# ---- construction ---------------------------------------------------------------------------


def test_values_are_checked_and_converted_on_construction():
    assert Leaf(size="3", rate=1).as_dict() == {"size": 3, "rate": 1.0}
    with pytest.raises(errors.WrongTypeError, match="size: expected a whole number, got 'big'"):
        Leaf(size="big")
    with pytest.raises(TypeError):
        Leaf(colour="red")


def test_the_first_argument_is_a_mapping_of_overrides():
    assert Tree({"made": {"size": 4}, "name": "elm"}).made.size == 4
    with pytest.raises(errors.UnknownKeyError, match=r"made\.siz: unknown key"):
        Tree({"made": {"siz": 4}})
    with pytest.raises(errors.ConfigError, match="got 50; pass fields by name"):
        Leaf(50)


def test_a_list_that_was_handed_over_is_not_shared():
    sizes = [5]
    tree = Tree(sizes=sizes)
    sizes.append(6)
    assert tree.sizes == [5]


def test_from_args_goes_by_the_order_of_the_fields():
    assert Leaf.from_args(3, 2).as_dict() == {"size": 3, "rate": 2.0}
    assert Leaf.from_args(3, rate=2) == Leaf.from_args(size=3, rate=2)
    with pytest.raises(errors.ConfigError, match="Leaf has 2 fields, got 3 values"):
        Leaf.from_args(1, 2, 3)
    with pytest.raises(errors.ConfigError, match="two values for size"):
        Leaf.from_args(1, size=2)


def test_a_post_init_of_a_subclass_runs():
    @dataclasses.dataclass
    class Square(Leaf):
        area: Optional[int] = None

        def __post_init__(self, default_params, restrictions):
            super().__post_init__(default_params, restrictions)
            self.area = self.size**2

    assert Square({"size": 3}).area == 9


# ---- attributes -----------------------------------------------------------------------------


def test_attributes_are_checked_when_set():
    tree = Tree()
    tree.made.size = "7"
    assert tree.made.size == 7
    tree.maybe = {"size": 2}
    assert tree.maybe == Leaf(size=2)
    with pytest.raises(errors.WrongTypeError, match="made: expected a Leaf"):
        tree.made = 3
    with pytest.raises(errors.UnknownKeyError, match="Tree has no field 'nmae'"):
        tree.nmae = "elm"


def test_a_missing_attribute_names_the_near_ones():
    with pytest.raises(AttributeError, match=r"has no field 'nmae'\. Did you mean name"):
        Tree().nmae  # noqa: B018
    assert not hasattr(Tree(), "nope")


def test_properties_of_a_subclass_work():
    @dataclasses.dataclass
    class Square(Leaf):
        @property
        def area(self):
            return self.size**2

        @area.setter
        def area(self, value):
            self.size = round(value**0.5)

    square = Square(size=3)
    assert square.area == 9
    square.area = 16
    assert square.size == 4
    assert "area" not in square.as_dict()


def test_only_an_added_key_can_be_deleted():
    config = Config({"a": 1, "b": 2})
    del config.a
    assert config.as_dict() == {"b": 2}
    with pytest.raises(errors.UnknownKeyError, match="cannot be deleted"):
        del Tree().name
    config.lock()
    with pytest.raises(errors.LockedError):
        del config.b


def test_contains_asks_for_keys():
    assert "name" in Tree()
    assert "nope" not in Tree()
    assert "as_dict" not in Tree()


# ---- reading --------------------------------------------------------------------------------


def test_get_follows_a_path_through_configs_lists_and_mappings():
    tree = Tree(by_name={"a": Leaf(size=8)})
    assert tree.get("name") == "oak"
    assert tree.get("leaves[0].size") == 3
    assert tree.get("by_name.a.size") == 8
    assert tree.get("pair[1]") == 0.5
    for path in ("nope", "made.nope", "leaves[1].size", "name.x", "maybe.size", "a b", ""):
        assert tree.get(path, 5) == 5
    assert Config({"a b": 1}).get("a b") == 1


def test_as_dict_is_plain_data_of_its_own():
    class Color(enum.Enum):
        RED = "red"

    @dataclasses.dataclass
    class Paint(Config):
        color: Color = Color.RED
        path: pathlib.PurePosixPath = pathlib.PurePosixPath("/a")
        tree: Tree = Tree(by_name={"a": Leaf()})

    plain = Paint().as_dict()
    assert plain["color"] == "red"
    assert plain["path"] == "/a"
    assert plain["tree"]["leaves"] == [{"size": 3, "rate": 0.5}]
    assert plain["tree"]["by_name"] == {"a": {"size": 1, "rate": 0.5}}
    assert plain["tree"]["pair"] == (1, 0.5)
    again = Paint()
    again.override(plain)
    assert again.color is Color.RED
    plain["tree"]["sizes"].append(5)
    assert Paint().tree.sizes == [1, 2]


def test_equality_is_by_class_and_visible_values():
    assert Tree() == Tree()
    assert Tree() != Tree(name="elm")
    assert Leaf() != Tree()
    assert Leaf() != {"size": 1, "rate": 0.5}
    with pytest.raises(TypeError, match="unhashable"):
        hash(Tree())


def test_repr_shows_fields_and_added_keys():
    leaf = Leaf()
    with pytest.warns(errors.ConfigWarning):
        leaf.override({"more": 1}, is_strict=False)
    assert repr(leaf) == "Leaf(size=1, rate=0.5, more=1)"


def test_yaml_and_json_are_read_back(tmp_path):
    tree = Tree(name="off", by_name={"a": Leaf(size=-5)}, pair=(1, float("inf")))
    (tmp_path / "tree.yaml").write_text(tree.to_yaml())
    (tmp_path / "tree.json").write_text(tree.to_json())
    assert Tree.from_yaml(tmp_path / "tree.yaml") == tree
    assert Tree.from_json(str(tmp_path / "tree.json")) == tree
    again = Tree()
    again.override(tree.to_json())
    assert again == tree


def test_what_no_file_can_hold_cannot_be_written():
    @dataclasses.dataclass
    class Opaque(Config):
        kind: type = int

    with pytest.raises(errors.ConfigError, match="cannot be written as JSON"):
        Opaque().to_json()
    with pytest.raises(errors.ConfigError, match="cannot be written as YAML"):
        Opaque().to_yaml()


def test_a_bare_config_takes_whatever_a_file_has(tmp_path):
    path = tmp_path / "any.yaml"
    path.write_text("a: {b: [1, {c: d}]}\n")
    config = Config.from_yaml(path)
    assert config.a.b[1].c == "d"
    assert str(config.origin("a.b[1].c")) == f"{path}:1"


# ---- origins --------------------------------------------------------------------------------


@pytest.fixture
def overridden(tmp_path):
    """A tree with values from each kind of place."""
    path = tmp_path / "f.yaml"
    path.write_text("name: elm\nleaves:\n- size: 5\n- rate: 1\nby_name:\n  a: {size: 4}\n")
    tree = Tree(given=Leaf(size=8))
    tree.stamp(Origin("experiment forest"))
    from hortus.hyperparams.overrides import load_overrides

    tree.override(load_overrides(path))
    tree.override(parse_overrides("made.size=3", "--params_override"))
    tree.sizes = [7]
    return tree, str(path)


def test_every_value_knows_where_it_came_from(overridden):
    tree, path = overridden
    assert {
        where: str(tree.origin(where))
        for where in (
            "name",
            "given.size",
            "given.rate",
            "made",
            "made.size",
            "leaves",
            "leaves[0]",
            "leaves[0].size",
            "leaves[0].rate",
            "leaves[1].rate",
            "by_name.a.size",
            "sizes",
            "sizes[0]",
            "pair",
        )
    } == {
        "name": f"{path}:1",
        "given.size": "experiment forest",
        "given.rate": "default",
        "made": "--params_override",
        "made.size": "--params_override",
        "leaves": f"{path}:2",
        "leaves[0]": f"{path}:2",
        "leaves[0].size": f"{path}:3",
        "leaves[0].rate": "default",
        "leaves[1].rate": f"{path}:4",
        "by_name.a.size": f"{path}:6",
        "sizes": "code",
        "sizes[0]": "code",
        "pair": "default",
    }


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda tree: tree.replace(), lambda tree: pickle.loads(pickle.dumps(tree))],
    ids=["deepcopy", "replace", "pickle"],
)
def test_a_copy_keeps_values_and_origins_and_is_independent(overridden, copied):
    tree, path = overridden
    new = copied(tree)
    assert new == tree
    assert str(new.origin("leaves[0].size")) == f"{path}:3"
    assert str(new.origin("given.size")) == "experiment forest"
    assert new.origin("sizes").is_explicit
    new.made.size = 99
    new.leaves[0].size = 98
    assert (tree.made.size, tree.leaves[0].size) == (3, 5)
    assert str(tree.origin("made.size")) == "--params_override"


def test_a_shallow_copy_has_its_own_fields_and_origins():
    tree = Tree()
    tree.name = "elm"
    new = copy.copy(tree)
    new.override(parse_overrides("name=ash", "--flag"))
    assert (tree.name, str(tree.origin("name"))) == ("elm", "code")
    assert (new.name, str(new.origin("name"))) == ("ash", "--flag")
    assert new.made is tree.made


def test_an_origin_of_nothing_is_an_error():
    for path in ("nope", "made.nope", "leaves[4].size", ""):
        with pytest.raises(errors.UnknownKeyError, match="no such field"):
            Tree().origin(path)


def test_a_stamp_marks_what_differs_from_the_defaults_or_was_set_in_code():
    tree = Tree(name="elm", leaves=[Leaf(rate=0.1)])
    tree.made.size = 1  # to the default, but on purpose
    tree.stamp(Origin("experiment forest"))
    origins = {path: str(tree.origin(path)) for path in ("name", "made.size", "leaves[0].rate")}
    assert set(origins.values()) == {"experiment forest"}
    assert str(tree.origin("given.size")) == "default"


# ---- override -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"made": {"size": 5}},
        "made.size=5",
        "made: {size: 5}",
        '{"made": {"size": 5}}',
        Config({"made": {"size": 5}}),
        parse_overrides("made.size=5"),
    ],
    ids=["mapping", "assignment", "yaml", "json", "config", "overrides"],
)
def test_override_takes_every_notation(given):
    tree = Tree()
    tree.override(given)
    assert tree == Tree(made=Leaf(size=5))


@pytest.mark.parametrize("given", [None, 5, [1], "just text"])
def test_override_takes_nothing_else(given):
    with pytest.raises(errors.ConfigError):
        Tree().override(given)


def test_items_of_lists_are_overridden_by_index():
    tree = Tree()
    tree.override("leaves[0].rate=0.25,leaves[1].size=4,sizes[0]=9,pair[1]=2")
    assert tree.leaves == [Leaf(size=3, rate=0.25), Leaf(size=4)]
    assert tree.sizes == [9, 2]
    assert tree.pair == (1, 2.0)
    with pytest.raises(errors.ConfigError, match=r"sizes\[5\] .*no item 5: the list has 2"):
        tree.override("sizes[5]=1")


def test_an_override_by_another_config_copies_its_values():
    source, target = Tree(name="elm"), Tree()
    target.override(source)
    source.made.size = 9
    assert target == Tree(name="elm")


# ---- lock and replace -----------------------------------------------------------------------


def test_lock_forbids_every_change_at_every_depth():
    tree = Tree(maybe=Leaf(), by_name={"a": Leaf()})
    tree.lock()
    inner = (tree, tree.made, tree.given, tree.maybe, tree.leaves[0], tree.by_name["a"])
    for config in inner:
        name = "name" if config is tree else "size"
        with pytest.raises(errors.LockedError):
            setattr(config, name, 1)
        with pytest.raises(errors.LockedError):
            config.override({name: 1})
    with pytest.raises(ValueError, match="locked; use replace"):
        tree.override("made.size=3")


def test_replace_gives_a_changed_unlocked_copy():
    tree = Tree(restrictions=["name != 'pine'"])
    tree.lock()
    new = tree.replace(name="pine", made={"size": 4})
    assert (tree.name, tree.made.size) == ("oak", 1)
    assert (new.name, new.made.size) == ("pine", 4)
    new.leaves[0].size = 6
    with pytest.raises(errors.RestrictionError):
        new.validate()
    with pytest.raises(errors.UnknownKeyError):
        tree.replace(nope=1)


def test_dataclasses_replace_keeps_the_restrictions():
    tree = dataclasses.replace(Tree(restrictions=["name != 'pine'"]), name="pine")
    assert tree.restrictions == ("name != 'pine'",)


# ---- validate -------------------------------------------------------------------------------


def test_validate_collects_restrictions_and_checks_of_all_parts(tmp_path):
    tree = Tree(restrictions=["made.size <= given.size", lambda tree: "never" if tree.name else ""])
    tree.override(parse_overrides("made.size=-5,given.rate=3,leaves[0].size=-1", "--flag"))
    tree.given.size = -6
    with pytest.raises(errors.RestrictionError) as caught:
        tree.validate()
    assert str(caught.value).splitlines() == [
        "8 problems in the config:",
        (
            "  - 'made.size <= given.size' does not hold: made.size is -5 (--flag) "
            "and given.size is -6 (code)"
        ),
        "  - never",
        "  - made.size (--flag): must not be negative, got -5",
        "  - made: the rate is above the size",
        "  - given.size (code): must not be negative, got -6",
        "  - given: the rate is above the size",
        "  - leaves[0].size (--flag): must not be negative, got -1",
        "  - leaves[0]: the rate is above the size",
    ]


def test_restrictions_count_when_validated_not_before():
    tree = Tree(restrictions=["made.size < 5"])
    tree.override({"made": {"size": 9}})
    assert tree.made.size == 9
    with pytest.raises(KeyError):
        tree.validate()


def test_a_nested_config_brings_its_own_restrictions():
    tree = Tree(made=Leaf(restrictions=["size == 2"]))
    with pytest.raises(errors.RestrictionError, match=r"^made: 'size == 2' does not hold"):
        tree.validate()


def test_a_single_rule_need_not_be_a_list():
    assert Tree(restrictions="made.size < 5").restrictions == ("made.size < 5",)


def test_a_valid_config_passes():
    Tree(restrictions=["made.size < given.size"]).validate()


# ---- inert fields ---------------------------------------------------------------------------


def test_setting_an_inert_field_warns_once():
    @dataclasses.dataclass
    class Bush(Config):
        old: bool = inert(False, "the engine chooses")

    bush = Bush()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            bush.old = True
    assert [str(one.message) for one in caught] == ["old (code) has no effect: the engine chooses"]


def test_anything_goes_where_the_annotation_says_so():
    @dataclasses.dataclass
    class Box(Config):
        content: Any = None

    box = Box()
    for value in (1, "a", [1, [2]], None, {"a": {"b": 1}}):
        box.content = value
    assert box.content.a.b == 1
    with pytest.raises(errors.WrongTypeError):
        box.content = object()
