import dataclasses
import json
import math
from typing import Annotated, Any, Dict, List, Optional, Tuple, Union

import pytest

from hortus import hyperparams
from hortus.hyperparams import bounds
from hortus.hyperparams.bounds import also, ge, gt, le, lt


@dataclasses.dataclass
class Sizes(hyperparams.Config):
    count: hyperparams.PositiveInt = 1
    steps: Annotated[int, ge(1), also(-1)] = -1
    share: Optional[hyperparams.Fraction] = None
    rate: Union[hyperparams.PositiveFloat, str] = "dynamic"
    pair: Tuple[hyperparams.PositiveInt, hyperparams.PositiveInt] = (1, 2)
    items: List[hyperparams.NonNegativeFloat] = dataclasses.field(default_factory=list)
    by_name: Dict[str, Annotated[int, lt(10)]] = dataclasses.field(default_factory=dict)
    plain: int = 0
    real: float = 0.0
    limit: float = math.inf
    free: hyperparams.AnyFloat = 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("count=0", "count (override): expected a whole number of 1 or more, got 0 (int)"),
        ("count='-3'", "expected a whole number of 1 or more, got '-3' (str)"),
        ("count=2147483648", "expected a whole number from 1 to 2147483647, got 2147483648 (int)"),
        ("steps=0", "expected a whole number of 1 or more, or -1, got 0 (int)"),
        ("steps=-2", "expected a whole number of 1 or more, or -1, got -2 (int)"),
        ("share=1.5", "expected a number from 0 to 1, got 1.5 (float)"),
        ("share=2", "expected a number from 0 to 1, got 2 (int)"),
        ("share=.nan", "expected a finite number from 0 to 1, got nan (float)"),
        ("rate=0", "expected a number above 0, got 0 (int)"),
        ("rate=.inf", "expected a finite number above 0, got inf (float)"),
        ("pair=[1, 0]", "pair[1] (override): expected a whole number of 1 or more, got 0 (int)"),
        ("items=[1, -1]", "items[1] (override): expected a number of 0 or more, got -1 (int)"),
        ("by_name={a: 10}", "by_name.a (override): expected a whole number below 10, got 10 (int)"),
        ("real=.nan", "expected a finite number, got nan (float)"),
        ("real='nan'", "expected a finite number, got 'nan' (str)"),
        ("real=1" + "0" * 400, "expected a number, got 1000000"),
    ],
)
def test_what_is_out_of_bounds_is_refused_where_it_is_set(change, message):
    config = Sizes()
    with pytest.raises(hyperparams.OutOfBoundsError) as caught:
        config.override(change)
    assert message in str(caught.value)
    assert config == Sizes()


@pytest.mark.parametrize("name", ["count", "steps", "real"])
def test_a_python_caller_is_told_too(name):
    with pytest.raises(hyperparams.OutOfBoundsError, match=f"{name}: expected"):
        Sizes(**{name: math.nan if name == "real" else -7})
    config = Sizes()
    with pytest.raises(hyperparams.OutOfBoundsError, match=f"{name}: expected"):
        setattr(config, name, math.nan if name == "real" else -7)


def test_what_is_within_bounds_stays_as_it_is():
    config = Sizes()
    config.override("count=2147483647,steps=-1,share=0,rate=2,pair=[3, 4],items=[0],plain=-5")
    assert (config.count, config.steps, config.share, config.rate) == (2**31 - 1, -1, 0.0, 2.0)
    assert (config.pair, config.items, config.plain) == ((3, 4), [0.0], -5)
    config.override("share=null,rate=dynamic,plain=1" + "0" * 30)
    assert (config.share, config.rate, config.plain) == (None, "dynamic", 10**30)


def test_a_float_may_be_infinite_where_its_type_or_its_default_says_so():
    config = Sizes(free=math.inf, limit=-math.inf)
    assert (config.free, config.limit) == (math.inf, -math.inf)
    config.override("free=.nan")
    assert math.isnan(config.free)


def test_a_default_out_of_its_bounds_is_a_mistake_of_the_class():
    @dataclasses.dataclass
    class Wrong(hyperparams.Config):
        count: hyperparams.PositiveInt = 0

    with pytest.raises(hyperparams.OutOfBoundsError, match="1 or more"):
        Wrong()


def test_bounds_belong_to_a_number():
    @dataclasses.dataclass
    class Wrong(hyperparams.Config):
        count: Annotated[Optional[int], ge(1)] = None

    with pytest.raises(hyperparams.ConfigError, match=r"Wrong.count: bounds belong to an int"):
        Wrong()


@pytest.mark.parametrize(
    ("parts", "inside", "outside", "words", "schema"),
    [
        ((ge(1),), (1, 5), (0, -1), "1 or more", {"minimum": 1}),
        ((gt(0),), (1e-300,), (0, -0.0, math.nan), "above 0", {"exclusiveMinimum": 0}),
        ((le(3),), (3, -9), (4, math.inf), "3 or less", {"maximum": 3}),
        ((lt(3),), (2.9,), (3, math.inf), "below 3", {"exclusiveMaximum": 3}),
        ((ge(0), le(1)), (0, 1), (-1, 2), "0 to 1", {"minimum": 0, "maximum": 1}),
        (
            (gt(0), le(1)),
            (0.1, 1),
            (0, 1.1),
            "above 0 and 1 at most",
            {"exclusiveMinimum": 0, "maximum": 1},
        ),
        (
            (ge(1), also(-1)),
            (1, -1),
            (0, -2),
            "1 or more, or -1",
            {"anyOf": [{"minimum": 1}, {"enum": [-1]}]},
        ),
        # The narrower of two.
        ((ge(0), gt(0)), (1,), (0,), "above 0", {"exclusiveMinimum": 0}),
        ((lt(1), le(1)), (0,), (1,), "below 1", {"exclusiveMaximum": 1}),
        ((ge(1), ge(3), le(9), le(7)), (3, 7), (2, 8), "3 to 7", {"minimum": 3, "maximum": 7}),
        ((), (-1e300,), (math.inf, math.nan), "", {}),
    ],
)
def test_bounds_hold_say_and_publish_the_same(parts, inside, outside, words, schema):
    both = bounds.UNBOUNDED
    for part in parts:
        both = both & part
    assert all(map(both.hold, inside)) and not any(map(both.hold, outside))
    assert both.words() == words
    assert both.schema() == schema


def test_an_end_for_the_machine_alone_is_told_where_it_matters():
    count = ge(1) & le(bounds.LARGEST_COUNT)
    assert count.words() == "1 or more"
    assert count.words(exact=True) == "1 to 2147483647"
    either = ge(-bounds.LARGEST_COUNT) & le(bounds.LARGEST_COUNT)
    assert either.words() == ""


def test_the_schema_tells_the_bounds():
    jsonschema = pytest.importorskip("jsonschema", reason="comes with hortus[dev]")
    schema = json.loads(json.dumps(hyperparams.json_schema(Sizes(limit=0.0))))
    properties: dict[str, Any] = schema["properties"]
    assert properties["count"]["minimum"] == 1
    assert properties["share"] == {
        "type": ["number", "null"],
        "minimum": 0,
        "maximum": 1,
        "default": None,
    }
    validator = jsonschema.Draft202012Validator(schema)
    good = {"count": 1, "steps": -1, "share": None, "rate": 0.1, "pair": [1, 2], "items": [0]}
    assert validator.is_valid(good)
    for name, value in [("count", 0), ("steps", 0), ("share", 2), ("pair", [1, 0]), ("rate", 0)]:
        assert not validator.is_valid({**good, name: value}), name


def test_fields_tell_their_bounds_in_words():
    told = {name: hyperparams.describe_bounds(Sizes, name) for name in Sizes._fields()}
    assert told == {
        "count": "1 or more",
        "steps": "1 or more, or -1",
        "share": "0 to 1",
        "rate": "above 0",
        "pair": "each 1 or more",
        "items": "each 0 or more",
        "by_name": "each below 10",
        "plain": "",
        "real": "",
        "limit": "",
        "free": "",
    }
