import dataclasses
import enum
import json
from typing import Annotated, Any, Dict, List, Literal, Optional, Tuple, Union

import pydantic
import pytest

from hortus.hyperparams.base_config import Config, inert
from hortus.hyperparams.errors import ConfigError
from hortus.hyperparams.oneof import OneOfConfig
from hortus.hyperparams.schema import describe_field, json_schema, summary


@dataclasses.dataclass
class Leaf(Config):
    """A leaf of a tree."""

    size: int = 1
    """In centimetres, from stem
    to tip."""
    rate: float = 0.5


@dataclasses.dataclass
class Needle(Leaf):
    rate: float = 0.1
    sharp: bool = True
    """Whether it hurts."""


@dataclasses.dataclass
class Choice(OneOfConfig):
    type: Optional[str] = None
    leaf: Leaf = Leaf()
    needle: Needle = Needle()


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Tree(Config):
    name: str = ""
    """What it is called."""
    count: Annotated[int, pydantic.Field(ge=0)] = 3
    kind: Literal["oak", "elm"] = "oak"
    leaf: Leaf = Leaf(size=4)
    maybe: Optional[Leaf] = None
    leaves: List[Leaf] = []
    by_name: Dict[str, Leaf] = {}
    pair: Tuple[int, float] = (1, 0.5)
    paths: Union[str, List[str]] = "a"
    source: Union[str, Leaf, List[Leaf]] = Leaf()
    color: Optional[Color] = Color.RED
    level: Optional[Literal["low", "high"]] = None
    size: Optional[Union[int, str]] = None
    parent: Optional["Tree"] = None
    choice: Choice = Choice()
    extra: Optional[Config] = None
    anything: Any = None
    old: bool = inert(False, "there is nothing to switch")
    """Switches it."""


# ---- descriptions ---------------------------------------------------------------------------


def test_the_text_below_a_field_describes_it():
    assert describe_field(Leaf, "size") == "In centimetres, from stem to tip."
    assert describe_field(Leaf, "rate") == ""
    assert describe_field(Leaf, "nope") == ""


def test_a_field_of_a_base_is_described_there():
    assert describe_field(Needle, "size") == "In centimetres, from stem to tip."
    assert describe_field(Needle, "sharp") == "Whether it hurts."
    assert describe_field(Choice, "type") == "The name of the branch to use; null for none."


def test_an_inert_field_says_so():
    expected = "Switches it. No effect: there is nothing to switch."
    assert describe_field(Tree, "old") == expected


def test_classes_of_the_same_name_are_told_apart():
    @dataclasses.dataclass
    class Leaf(Config):
        size: int = 1
        """Of another leaf."""

    assert describe_field(Leaf, "size") == "Of another leaf."


def test_a_class_without_source_has_no_descriptions():
    names: dict = {"dataclasses": dataclasses, "Config": Config, "__name__": "console"}
    exec("@dataclasses.dataclass\nclass A(Config):\n  x: int = 1\n  'text'\n", names)
    assert describe_field(names["A"], "x") == ""


def test_the_summary_is_what_a_person_wrote():
    assert summary(Leaf) == "A leaf of a tree."
    assert summary(Needle) == ""


# ---- schema ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def accepts():
    """Whether the schema of a Tree accepts some data."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema(Tree(), title="tree")
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).is_valid


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"name": "a", "count": 0, "kind": "elm"},
        {"name": None},
        {"leaf": {"size": 3, "rate": 1}, "maybe": {"size": 2}},
        {"leaf": None, "maybe": None},
        {"leaves": [{}, {"rate": 0.1}], "by_name": {"a": {"size": 1}}},
        {"pair": [1, 2.5], "paths": ["a"]},
        {"paths": "a"},
        {"parent": {"parent": {"leaf": {"size": 2}}}},
        {"choice": {"type": "needle", "needle": {"sharp": False}}},
        {"choice": {"type": None}},
        {"extra": {"any": [1]}, "anything": {"a": [None]}},
        {"old": True},
        {"source": "a"},
        {"source": {"size": 3}},
        {"source": [{"size": 3}]},
        {"color": "red", "level": "low", "size": "a"},
        {"color": None, "level": None, "size": None},
        {"size": 3},
    ],
)
def test_it_accepts_what_override_accepts(accepts, values):
    Tree(values)
    assert accepts(values)


@pytest.mark.parametrize(
    "values",
    [
        {"nope": 1},
        {"count": -1},
        {"count": 1.5},
        {"kind": "pine"},
        {"leaf": {"siz": 1}},
        {"leaf": {"size": "big"}},
        {"leaves": [{"siz": 1}]},
        {"by_name": {"a": {"size": []}}},
        {"pair": [1]},
        {"pair": [1, 2, 3]},
        {"parent": {"parent": {"nope": 1}}},
        {"choice": {"type": "pine"}},
        {"source": {"siz": 3}},
        {"color": "blue"},
        {"level": "middle"},
        {"size": []},
        [],
    ],
)
def test_it_refuses_what_override_refuses(accepts, values):
    with pytest.raises(ConfigError):
        Tree(values)
    assert not accepts(values)


def test_it_carries_descriptions_and_the_values_as_defaults():
    tree = Tree({"leaf": {"rate": 0.25}, "leaves": [{"size": 7}]})
    schema = json_schema(tree)
    assert schema["title"] == "Tree"
    fields = schema["properties"]
    assert fields["name"]["description"] == "What it is called."
    assert fields["leaf"]["properties"]["rate"]["default"] == 0.25
    assert fields["leaf"]["description"] == "A leaf of a tree."
    assert fields["leaves"]["default"] == [{"size": 7, "rate": 0.5}]
    assert fields["pair"]["default"] == [1, 0.5]
    assert fields["old"]["deprecated"] is True
    assert "$defs" in schema


def test_a_mistake_is_named_by_its_own_place():
    # `anyOf` with null would put every mistake at the root.
    jsonschema = pytest.importorskip("jsonschema")
    values = {"leaf": {"size": "big"}, "parent": {"leaf": {"siz": 1}}, "level": 3}
    found = jsonschema.Draft202012Validator(json_schema(Tree())).iter_errors(values)
    assert sorted(error.json_path for error in found) == ["$.leaf.size", "$.level", "$.parent.leaf"]


def test_it_can_be_written_as_json():
    assert json.loads(json.dumps(json_schema(Tree()))) == json_schema(Tree())
