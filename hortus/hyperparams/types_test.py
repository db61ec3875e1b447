import dataclasses
import enum
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Dict, List, Literal, Optional, Set, Tuple, Union

import pydantic
import pytest

from hortus.hyperparams import bounds, errors, types
from hortus.hyperparams.base_config import Config
from hortus.hyperparams.merge import Merge


@dataclasses.dataclass
class Leaf(Config):
    size: int = 1
    rate: float = 0.5


@dataclasses.dataclass
class Other(Config):
    name: str = ""


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


def _is_config(annotation):
    return isinstance(annotation, type) and issubclass(annotation, Config)


def parse(annotation, value, current=None):
    """The value as a field with this annotation would store it; raises what is wrong with it."""
    merge = Merge(Config)
    parsed = types.parse_type(annotation, _is_config).parse(value, current, ("x",), merge)
    merge.commit()
    assert parsed is not types.INVALID
    return parsed


def same(value, expected):
    return value == expected and type(value) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, 3, 3),
        (int, 3.0, 3),
        (int, "3", 3),
        (int, "1_000", 1000),
        (float, 3, 3.0),
        (float, "1e-3", 1e-3),
        (bounds.AnyFloat, float("inf"), float("inf")),
        (bounds.AnyFloat, 3, 3.0),
        (bounds.PositiveInt, "3", 3),
        (Union[bounds.PositiveFloat, str], 2, 2.0),
        (Union[bounds.PositiveFloat, str], "dynamic", "dynamic"),
        (bool, True, True),
        (bool, "off", False),
        (bool, "yes", True),
        (bool, 0, False),
        (str, "a", "a"),
        (str, 50, "50"),
        (str, 0.5, "0.5"),
        (str, pathlib.PurePosixPath("/a/b"), "/a/b"),
        (type(None), None, None),
        (None, None, None),
        (Literal["a", 1], 1, 1),
        (Color, "red", Color.RED),
        (pathlib.Path, "/a", pathlib.Path("/a")),
        (Annotated[int, pydantic.Field(ge=0)], 4, 4),
        (Annotated[int, pydantic.Field(ge=0)], "4", 4),
    ],
)
def test_a_single_value_is_converted_where_nothing_is_lost(annotation, value, expected):
    assert same(parse(annotation, value), expected)


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (int, 3.5, "a whole number, got 3.5 (float)"),
        (int, "abc", "a whole number, got 'abc' (str)"),
        (int, True, "a whole number, got True (bool)"),
        (int, None, "a whole number, got null"),
        (int, [1], "a whole number, got [1] (list)"),
        (int, float("nan"), "a whole number"),
        (int, float("inf"), "a whole number"),
        (float, False, "a number, got False (bool)"),
        (float, "fast", "a number, got 'fast' (str)"),
        (bool, 2, "true or false, got 2 (int)"),
        (bool, "maybe", "true or false"),
        (str, True, "text, got True (bool)"),
        (str, None, "text, got null"),
        pytest.param(str, 10**5000, "text, got a int too large to show", id="huge"),
        (str, {"a": 1}, "text, got {'a': 1} (dict)"),
        (
            Literal["high", "low"],
            "hihg",
            "one of 'high', 'low', got 'hihg' (str). Did you mean high",
        ),
        (Literal[1, 2], True, "one of 1, 2, got True (bool)"),
        (Color, "green", "Color, got 'green' (str): Input should be 'red' or 'blue'"),
        (Annotated[int, pydantic.Field(ge=0)], -1, "greater than or equal to 0"),
        (int, types.ItemPatch({0: 1}), "a whole number, got changes to single items"),
    ],
)
def test_a_wrong_single_value_says_what_was_expected_and_what_came(annotation, value, words):
    with pytest.raises(errors.WrongTypeError) as caught:
        parse(annotation, value)
    assert words in str(caught.value)
    assert str(caught.value).startswith("x: expected ")


def test_numbers_of_numpy_are_plain_numbers():
    np = pytest.importorskip("numpy")
    assert same(parse(float, np.float32(0.5)), 0.5)
    assert same(parse(int, np.int64(3)), 3)
    assert same(parse(List[int], np.array([1, 2])), [1, 2])
    assert same(parse(Tuple[float, float], np.array([1, 2])), (1.0, 2.0))
    assert same(parse(Any, np.float64(2.0)), 2.0)
    assert same(parse(Any, np.array([[1], [2]])), [[1], [2]])
    with pytest.raises(errors.WrongTypeError):
        parse(int, np.array([1, 2]))


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (List[int], [1, "2"], [1, 2]),
        (List[int], (1, 2), [1, 2]),
        (list, [1, [2, "a"]], [1, [2, "a"]]),
        (List[List[int]], [[1], []], [[1], []]),
        (Tuple[int, ...], [1, 2, 3], (1, 2, 3)),
        (tuple, [1, "a"], (1, "a")),
        (Tuple[int, str], [1, "a"], (1, "a")),
        (Sequence[int], [1], [1]),
        (Sequence[int], (1,), (1,)),
        (Dict[str, float], {"a": 1}, {"a": 1.0}),
        (Dict[int, str], {"3": "x"}, {3: "x"}),
        (Dict[str, int], {3: 4}, {"3": 4}),
        (Mapping[str, List[int]], {"a": (1,)}, {"a": [1]}),
        (dict, {"a": 1}, {"a": 1}),
    ],
)
def test_containers_are_converted_item_by_item(annotation, value, expected):
    assert same(parse(annotation, value), expected)


def test_a_container_that_came_is_copied():
    value = [[1], [2]]
    parsed = parse(List[List[int]], value)
    parsed[0].append(5)
    assert value == [[1], [2]]


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (List[int], [1, "x"], "x[1]"),
        (Tuple[int, ...], [1, None], "x[1]"),
        (Tuple[int, str], [None, "a"], "x[0]"),
        (Dict[str, int], {"a": "b"}, "x.a"),
        (Dict[int, int], {"a": 1}, "x.a"),
        (List[Leaf], [{}, {"size": "big"}], "x[1].size"),
        (Dict[str, Leaf], {"a": {"size": "big"}}, "x.a.size"),
        (Optional[Leaf], {"size": "big"}, "x.size"),
        (List[int], "12", "x"),
        (Tuple[int, int], [1, 2, 3], "x"),
        (Dict[str, int], [1], "x"),
        (Leaf, "small", "x"),
        (Leaf, [1], "x"),
        (Leaf, Other(), "x"),
    ],
)
def test_a_wrong_item_is_named_by_its_path(annotation, value, path):
    with pytest.raises(errors.WrongTypeError) as caught:
        parse(annotation, value)
    assert str(caught.value).startswith(f"{path}: expected")


def test_every_wrong_item_is_reported():
    with pytest.raises(errors.ConfigError) as caught:
        parse(Dict[str, List[int]], {"a": ["b", 1, "c"], "d": ["e"]})
    paths = [problem.path for problem in caught.value.problems]
    assert paths == [("x", "a", 0), ("x", "a", 2), ("x", "d", 0)]


def test_text_where_a_list_is_expected_shows_how_to_write_one():
    with pytest.raises(errors.ConfigError, match=r"write it in brackets: \[a, b\]"):
        parse(List[str], "a,b")


# ---- unions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Optional[int], None, None),
        (Optional[int], "3", 3),
        (Union[str, float], "1e-3", "1e-3"),
        (Union[str, float], 128, 128.0),
        (Union[float, str], "dynamic", "dynamic"),
        (Union[int, str], "3", "3"),
        (Union[int, str], 3, 3),
        (Union[int, str], 3.5, "3.5"),
        (Union[bool, int], 3, 3),
        (Union[bool, int], "true", True),
        (Union[str, List[str]], ["a"], ["a"]),
        (Union[str, List[str]], "a", "a"),
        (Union[List[int], List[str]], ["a"], ["a"]),
        (int | None, None, None),
    ],
)
def test_a_union_takes_the_exact_option_else_the_first_that_converts(annotation, value, expected):
    assert same(parse(annotation, value), expected)


def test_a_union_of_configs_takes_the_one_that_has_the_keys():
    assert parse(Union[Leaf, Other], {"name": "a"}) == Other(name="a")
    assert parse(Union[Other, Leaf], {"size": 2}) == Leaf(size=2)


def test_a_union_of_configs_merges_into_what_is_there():
    current = Other(name="a")
    assert parse(Union[Leaf, Other], {}, current) is current
    assert parse(Union[Leaf, Other], {"size": 3}, current) == Leaf(size=3)


def test_a_failed_option_of_a_union_leaves_no_trace():
    current = Leaf(size=1)
    with pytest.raises(errors.ConfigError, match=r"x\.nope: unknown key"):
        parse(Union[Leaf, Other], {"size": 2, "nope": 3}, current)
    assert current.size == 1


def test_a_union_whose_only_fitting_option_fails_says_why():
    with pytest.raises(errors.ConfigError, match=r"x\[1\]: expected a whole number"):
        parse(Optional[List[int]], [1, "a"])


def test_a_union_that_nothing_fits_names_all_options():
    with pytest.raises(errors.ConfigError, match=r"expected a whole number or null, got \[\]"):
        parse(Optional[int], [])


# ---- list items by index --------------------------------------------------------------------


def test_a_patch_changes_adds_and_merges_single_items():
    assert parse(List[int], types.ItemPatch({1: 5}), [1, 2, 3]) == [1, 5, 3]
    assert parse(List[int], types.ItemPatch({3: 4}), [1, 2, 3]) == [1, 2, 3, 4]
    assert parse(List[int], types.ItemPatch({0: 1, 1: 2}), None) == [1, 2]
    assert parse(Tuple[int, int], types.ItemPatch({1: 5}), (1, 2)) == (1, 5)
    assert parse(Optional[List[int]], types.ItemPatch({0: 9}), [1]) == [9]
    assert parse(Any, types.ItemPatch({0: 9}), [1, 2]) == [9, 2]
    assert parse(Dict[int, str], types.ItemPatch({3: "x"}), {1: "y"}) == {1: "y", 3: "x"}


def test_a_patch_of_a_config_in_a_list_keeps_its_other_values():
    current = [Leaf(size=1, rate=0.1), Leaf(size=2)]
    patched = parse(List[Leaf], types.ItemPatch({0: {"size": 7}}), current)
    assert patched == [Leaf(size=7, rate=0.1), Leaf(size=2)]


@pytest.mark.parametrize("annotation", [List[int], Tuple[int, int], Optional[Tuple[int, ...]]])
def test_a_patch_beyond_the_end_is_an_error(annotation):
    with pytest.raises(errors.ConfigError, match=r"x\[5\]: no item 5"):
        parse(annotation, types.ItemPatch({5: 0}), (1, 2))


# ---- a forgotten comma ----------------------------------------------------------------------


def test_a_forgotten_comma_is_mended_with_a_warning():
    with pytest.warns(errors.ConfigWarning, match=r"x\[0\] .*comma is missing in '320 320'"):
        assert parse(List[int], ["320 320", 3]) == [320, 320, 3]
    with pytest.warns(errors.ConfigWarning):
        assert parse(Tuple[float, float], ["0.5 1"]) == (0.5, 1.0)
    with pytest.warns(errors.ConfigWarning):
        assert parse(Optional[List[float]], ["1e-3 2"]) == [1e-3, 2.0]


def test_text_with_spaces_is_left_alone_where_text_is_expected(recwarn):
    assert parse(List[str], ["1 2"]) == ["1 2"]
    with pytest.raises(errors.WrongTypeError, match="got '1 b'"):
        parse(List[int], ["1 b"])
    assert not recwarn


# ---- anything -------------------------------------------------------------------------------


def test_anything_takes_plain_data_and_makes_configs_of_mappings():
    parsed = parse(Any, {"a": [1, {"b": None}], "c": (1, 2)})
    assert isinstance(parsed, Config)
    assert isinstance(parsed.a[1], Config)
    assert parsed.as_dict() == {"a": [1, {"b": None}], "c": (1, 2)}
    assert parse(Any, Color.RED) == "red"
    assert parse(object, pathlib.PurePosixPath("/a")) == "/a"


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", 1j, lambda: 0])
def test_anything_refuses_what_no_file_can_hold(value):
    with pytest.raises(errors.WrongTypeError, match="expected plain data"):
        parse(Any, value)


def test_data_that_contains_itself_is_an_error():
    loop: list = [1]
    loop.append(loop)
    with pytest.raises(errors.ConfigError, match="nested too deeply"):
        parse(Any, loop)
    circle: dict = {}
    circle["a"] = circle
    with pytest.raises(errors.ConfigError, match="nested too deeply"):
        parse(Any, circle)


# ---- annotations ----------------------------------------------------------------------------


@pytest.mark.parametrize("annotation", [set, frozenset, Set[str], Optional[List[Set[int]]]])
def test_a_set_has_no_notation_and_is_refused(annotation):
    with pytest.raises(errors.ConfigError, match="use a list"):
        types.parse_type(annotation, _is_config)


def test_an_annotated_config_is_a_config():
    assert parse(Annotated[Leaf, "the leaf"], {"size": 2}) == Leaf(size=2)


def test_order_counts_in_each_union_of_its_own():
    # `Union[int, str] == Union[str, int]` in Python: nothing may be cached by equality.
    assert types.parse_type(Union[int, str], _is_config).name == "a whole number or text"
    assert types.parse_type(Union[str, int], _is_config).name == "text or a whole number"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement came with Python 3.12")
def test_a_type_alias_is_what_it_stands_for():
    names: dict = {}
    exec("type Size = int | None", names)
    assert parse(names["Size"], "3") == 3
    assert parse(names["Size"], None) is None
