import dataclasses
from typing import ClassVar, List, Optional, Sequence, Tuple, Union

import pytest

from hortus.hyperparams import errors, fields
from hortus.hyperparams.base_config import Config, inert


@dataclasses.dataclass
class Leaf(Config):
    size: int = 1


def specs(cls):
    return fields.field_specs(cls, lambda kind: isinstance(kind, type) and issubclass(kind, Config))


def test_fields_come_in_order_those_of_the_base_first():
    @dataclasses.dataclass
    class Bush(Leaf):
        name: str = "elder"
        size: int = 2

    assert list(specs(Bush)) == ["size", "name"]
    assert specs(Bush)["name"].annotation is str
    assert list(specs(Config)) == []


def test_a_default_of_none_makes_a_field_optional():
    @dataclasses.dataclass
    class Bush(Config):
        name: str = None
        leaf: Leaf = None

    assert Bush(name="a").name == "a"
    assert Bush(name=None, leaf=None).name is None
    assert specs(Bush)["name"].type.name == "text or null"


def test_class_variables_and_init_variables_are_no_fields():
    @dataclasses.dataclass
    class Bush(Config):
        kinds: ClassVar[List[str]] = ["elder"]
        scale: dataclasses.InitVar[int] = 1
        size: int = 1

        def __post_init__(self, default_params, restrictions, scale):
            self.size *= scale
            super().__post_init__(default_params, restrictions)

    assert list(specs(Bush)) == ["size"]
    assert Bush.kinds == ["elder"]
    assert Bush(scale=3).size == 3


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (ClassVar[int], True),
        (ClassVar, True),
        (dataclasses.InitVar[int], True),
        ("typing.ClassVar[int]", True),
        ("InitVar[int]", True),
        (int, False),
        ("int", False),
        ("MyClassVariable", False),
        (Optional[int], False),
    ],
)
def test_what_is_class_level(annotation, expected):
    assert fields.is_class_level(annotation) is expected


def test_null_means_empty_where_a_text_or_list_is_empty_by_default():
    @dataclasses.dataclass
    class Bush(Config):
        path: str = ""
        paths: Union[str, Sequence[str]] = ""
        sizes: List[int] = dataclasses.field(default_factory=list)
        more: List[int] = []
        pair: Tuple[int, ...] = ()
        kind: str = "elder"
        count: int = 0
        note: Optional[str] = ""
        some: List[int] = [1]

    expected = {"path": "", "paths": "", "sizes": [], "more": [], "pair": []}
    assert {n: s.empty for n, s in specs(Bush).items() if s.empty is not None} == expected
    bush = Bush(path="a", sizes=[1], pair=(1,), note="b")
    bush.override({"path": None, "sizes": None, "pair": None, "note": None})
    assert (bush.path, bush.sizes, bush.pair, bush.note) == ("", [], (), None)
    for name in ("kind", "count", "some"):
        with pytest.raises(errors.WrongTypeError, match=f"{name}: expected .* got null"):
            bush.override({name: None})


def test_a_class_without_the_decorator_is_an_error():
    class Bush(Config):
        size: int = 1

    with pytest.raises(errors.ConfigError, match=r"Bush has fields: decorate it"):
        Bush()


def test_a_class_that_adds_no_fields_needs_no_decorator():
    class Bush(Leaf):
        """The same fields."""

    assert Bush(size=3).as_dict() == {"size": 3}


def test_a_field_without_a_default_is_an_error():
    @dataclasses.dataclass(kw_only=True)
    class Bush(Config):
        size: int

    with pytest.raises(errors.ConfigError, match=r"Bush\.size: a field needs a default"):
        Bush(size=3)


def test_a_type_that_no_file_can_hold_names_the_field():
    @dataclasses.dataclass
    class Bush(Config):
        kinds: set = dataclasses.field(default_factory=set)

    with pytest.raises(errors.ConfigError, match=r"Bush\.kinds: a set .* use a list"):
        Bush()


def test_the_reason_of_an_inert_field_is_known():
    @dataclasses.dataclass
    class Bush(Config):
        old: bool = inert(False, "gone")
        leaves: List[int] = inert([1], "gone too")
        leaf: Leaf = inert(Leaf(size=2), "and that")

    assert {name: spec.inert for name, spec in specs(Bush).items()} == {
        "old": "gone",
        "leaves": "gone too",
        "leaf": "and that",
    }
    first, second = Bush(), Bush()
    first.leaves.append(5)
    assert second.leaves == [1]
    assert first.leaf is not second.leaf
