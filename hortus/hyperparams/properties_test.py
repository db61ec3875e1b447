"""What holds for every config: generated classes, generated values."""

import contextlib
import copy
import dataclasses
import random
from typing import Any, Dict, List, Literal, Optional, Tuple, Union

import hypothesis
import pytest
from hypothesis import strategies as st

from hortus.hyperparams import bounds
from hortus.hyperparams.base_config import Config
from hortus.hyperparams.diff import diff, walk
from hortus.hyperparams.errors import ConfigError, LockedError
from hortus.hyperparams.oneof import OneOfConfig
from hortus.hyperparams.overrides import parse_overrides

# The same examples in each run: a failure in CI can be repeated anywhere.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=250)
FIXED = hypothesis.settings.get_profile("fixed")

NAMES = st.sampled_from(["alpha", "beta_2", "gamma", "size", "kernel_sizes", "type_", "x"])
INTS = st.integers(-(10**30), 10**30)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ANY_FLOATS = st.floats(allow_nan=False)
TEXTS = st.text(max_size=12) | st.sampled_from(
    ["", "off", "1e-3", "010", "null", "~", "1:30", "a: b", "- a", "#", "*", "[1", "'", "\t", "=="]
)
KEYS = st.text(min_size=1, max_size=8).filter(lambda k: k[0] != "_" and not hasattr(Config, k))
PLAIN = st.recursive(
    st.none() | st.booleans() | INTS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@dataclasses.dataclass(frozen=True)
class Kind:
    """An annotation, the data that a file may hold for it, and some defaults."""

    annotation: Any
    values: st.SearchStrategy
    defaults: tuple[Any, ...]


SCALARS = [
    Kind(int, INTS, (0, -5)),
    Kind(float, FLOATS, (0.0, 1e-5)),
    Kind(bounds.AnyFloat, ANY_FLOATS, (0.0, float("inf"))),
    Kind(bounds.NonNegativeInt, st.integers(0, bounds.LARGEST_COUNT), (0, 5)),
    Kind(bounds.Fraction, st.floats(0, 1), (0.0, 1.0)),
    Kind(bool, st.booleans(), (True, False)),
    Kind(str, TEXTS, ("", "off")),
    Kind(Any, st.none() | INTS | TEXTS | st.lists(PLAIN, max_size=3), (None, 3, [1, "a"])),
    Kind(Literal["a", "b", 3], st.sampled_from(["a", "b", 3]), ("a", 3)),
    Kind(Union[int, str], INTS | TEXTS, (1, "1")),
    Kind(Union[str, float, None], st.none() | TEXTS | FLOATS, (None, "dynamic", 2.0)),
    Kind(Union[str, List[str]], TEXTS | st.lists(TEXTS, max_size=3), ("", ["a"])),
]


def make_kind(rng: random.Random, depth: int) -> Kind:
    shapes = ["optional", "list", "tuple", "pair", "dict", "ints", "config", "config"]
    shape = rng.choice(shapes) if depth and rng.random() < 0.6 else "scalar"
    if shape == "scalar":
        return rng.choice(SCALARS)
    if shape == "config":
        cls, values = make_class(rng, depth - 1)
        return Kind(cls, values, (cls(), dataclasses.field(default_factory=cls)))
    inner = make_kind(rng, depth - 1)
    default = rng.choice(inner.defaults)
    if isinstance(default, dataclasses.Field):
        default = default.default_factory()
    if shape == "optional":
        return Kind(Optional[inner.annotation], st.none() | inner.values, (None, default))
    lists = st.lists(inner.values, max_size=3)
    if shape == "list":
        return Kind(
            List[inner.annotation], lists, ([], [default], dataclasses.field(default_factory=list))
        )
    if shape == "tuple":
        return Kind(Tuple[inner.annotation, ...], lists, ((), (default, default)))
    if shape == "dict":
        values = st.dictionaries(TEXTS, inner.values, max_size=3)
        return Kind(Dict[str, inner.annotation], values, ({}, {"a": default}))
    if shape == "ints":
        values = st.dictionaries(st.integers(), inner.values, max_size=2)
        return Kind(Dict[int, inner.annotation], values, ({}, {3: default}))
    other = rng.choice(SCALARS)
    pairs = st.tuples(inner.values, other.values).map(list)
    return Kind(Tuple[inner.annotation, other.annotation], pairs, ((default, other.defaults[0]),))


def make_class(rng: random.Random, depth: int) -> tuple[type[Config], st.SearchStrategy]:
    """A config class, and the mappings that override it."""
    names = rng.sample(["alpha", "beta_2", "gamma", "size", "kernel_sizes", "x"], rng.randint(1, 4))
    if depth and rng.random() < 0.3:
        fields = {}
        for name in names:
            cls, values = make_class(rng, 0)
            fields[name] = Kind(cls, values, (cls(),))
        base: type[Config] = OneOfConfig
        choice = {"type": st.sampled_from([None, *names])}
    else:
        fields = {name: make_kind(rng, depth) for name in names}
        base, choice = Config, {}
    specs = [(name, kind.annotation, rng.choice(kind.defaults)) for name, kind in fields.items()]
    cls = dataclasses.make_dataclass("Made", specs, bases=(base,))
    values = {name: kind.values for name, kind in fields.items()}
    return cls, st.fixed_dictionaries({}, optional={**choice, **values})


# To make a class takes longer than a test of it: they are made once, from a fixed seed.
CLASSES = [make_class(random.Random(seed), depth=3) for seed in range(60)]
MADE = st.sampled_from(CLASSES)


@st.composite
def configs(draw) -> Config:
    cls, values = draw(MADE)
    return cls(draw(values))


def quiet(test):
    """Runs a test with the fixed settings; generated text may warn of this and that."""
    return pytest.mark.filterwarnings("ignore::hortus.hyperparams.ConfigWarning")(
        hypothesis.settings(FIXED, suppress_health_check=list(hypothesis.HealthCheck))(test)
    )


@quiet
@hypothesis.given(configs())
def test_as_dict_overrides_a_new_one_to_the_same(config):
    again = type(config)()
    again.override(config.as_dict())
    assert again == config
    assert again.as_dict() == config.as_dict()
    again.override(config)
    assert again == config


@quiet
@hypothesis.given(configs())
def test_yaml_and_json_override_a_new_one_to_the_same(config):
    for text in (config.to_yaml(), config.to_json()):
        again = type(config)()
        again.override(text)
        assert again == config
    assert again.to_yaml() == config.to_yaml()


@quiet
@hypothesis.given(configs())
def test_copies_are_equal_and_free(config):
    config.lock()
    for new in (copy.deepcopy(config), config.replace()):
        assert new == config
        assert diff(new, config) == []
    for key in config._keys():
        with pytest.raises(LockedError):
            setattr(config, key, None)
    new.override(config)
    assert new == config


@quiet
@hypothesis.given(configs())
def test_every_path_leads_to_its_value(config):
    seen = set()
    for leaf in walk(config):
        assert leaf.path not in seen or not leaf.path.isidentifier()
        seen.add(leaf.path)
        assert leaf.owner.origin(leaf.name) == leaf.origin
    config.validate()


@quiet
@hypothesis.given(MADE.flatmap(lambda made: st.tuples(st.just(made[0]), made[1], made[1])))
def test_a_second_override_keeps_what_it_does_not_name(made):
    cls, first, second = made
    config = cls(first)
    before = config.as_dict()
    config.override(second)
    after = config.as_dict()
    if not issubclass(cls, OneOfConfig):
        untouched = before.keys() - second.keys()
        assert {key: after[key] for key in untouched} == {key: before[key] for key in untouched}


@quiet
@hypothesis.given(MADE, st.dictionaries(NAMES | KEYS, PLAIN, max_size=4), st.booleans())
def test_junk_is_taken_or_refused_as_a_whole(made, junk, is_strict):
    config = made[0]()
    before, text = config.as_dict(), config.to_yaml()
    try:
        config.override(junk, is_strict)
    except ConfigError:
        assert config.as_dict() == before
    else:
        again = made[0]()
        again.override(config.as_dict(), is_strict=False)
        assert again.as_dict() == config.as_dict()
    assert made[0]().to_yaml() == text


@quiet
@hypothesis.given(st.text(max_size=40) | st.text("ab.=[]{}'\",: 01\n\\", max_size=40))
def test_any_text_is_overrides_or_an_error(text):
    with contextlib.suppress(ConfigError):
        assert isinstance(parse_overrides(text, "--flag").values, dict)


@quiet
@hypothesis.given(
    st.lists(st.tuples(NAMES, NAMES, INTS | FLOATS | TEXTS | st.none()), min_size=1, max_size=4)
)
def test_assignments_say_what_nested_data_says(assignments):
    expected: dict = {}
    parts = []
    for outer, inner, value in assignments:
        expected.setdefault(outer, {})[inner] = value
        text = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else _word(value)
        parts.append(f"{outer}.{inner}={text}")
    hypothesis.assume(not any(set("\n\r\x85\u2028\u2029") & set(part) for part in parts))
    hypothesis.assume(all(part.isprintable() for part in parts))
    assert parse_overrides(",".join(parts)).values == expected


def _word(value: Any) -> str:
    if value is None:
        return "null"
    return repr(value).replace("inf", ".inf")
