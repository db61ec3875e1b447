"""Generated YAML and generated values: a config or a ConfigError, never anything else.

HORTUS_FUZZ=10000 tries so many of each.
"""

import copy
import json
import math
import warnings
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus import hyperparams
from hortus.core import exp_factory
from hortus.hyperparams import types
from hortus.hyperparams.overrides import parse_overrides
from hortus.hyperparams.yaml_text import dump_yaml, read_yaml
from hortus.testing import fuzz
from hortus.vision import registry_imports  # noqa: F401

ORIGIN = hyperparams.Origin("generated")
EXPERIMENTS = ["resnet_imagenet", "retinanet_resnetfpn_coco", "seg_deeplabv3plus_pascal"]
pytestmark = pytest.mark.filterwarnings("ignore::hortus.hyperparams.ConfigWarning")

# ---- YAML -----------------------------------------------------------------------------------

WORDS = st.sampled_from(
    """a task: runtime: - ? : , [ ] { } & * &a *a << <<: ! !!str !!int !!python/name:os.system | >
    |- # ' " % @ ` --- ... ~ null true 1 -1 1e999 .nan .inf 0x 0o8 1_0 1:30 \\x""".split()  # noqa: SIM905
)
SPACES = st.sampled_from(["\n", "\n  ", "\n    ", " ", "\t"])
YAMLISH = st.lists(WORDS | SPACES | st.text(max_size=4)).map("".join)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["off", "010", "1e-3", "~", "1:30", "2024-01-01", "<<", "=", "0x1F"])
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)


def is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(is_plain, [*value, *value.values()]))
    return type(value) in (str, int, float, bool, type(None))


@fuzz.examples()
@given(text=YAMLISH | st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "replace")))
def test_yaml_text_is_plain_data_or_a_config_error(text):
    for read in (
        lambda: read_yaml(text, ORIGIN, with_lines=True)[0],
        lambda: parse_overrides(text, "--params_override").values,
    ):
        try:
            assert is_plain(read())
        except hyperparams.ConfigError as error:
            message = str(error)
        else:
            continue
        assert message


@fuzz.examples()
@given(data=st.dictionaries(st.text(max_size=6), DATA, max_size=4))
def test_what_is_written_as_yaml_is_read_back(data):
    try:
        text = dump_yaml(data)
    except hyperparams.ConfigError:
        hypothesis.reject()  # half a surrogate pair, which no file can hold
    values, _ = read_yaml(text, ORIGIN, with_lines=True)
    assert repr(values) == repr(data)  # as text, in which NaN is like NaN


# ---- configs --------------------------------------------------------------------------------


def paths(config: hyperparams.Config, prefix: str = "") -> list[str]:
    found = []
    for name in config.as_dict():
        found.append(f"{prefix}{name}")
        value = config.get(name)
        if isinstance(value, hyperparams.Config):
            found += paths(value, f"{prefix}{name}.")
    return found


BUILT = {name: exp_factory.get_exp_config(name) for name in EXPERIMENTS}
PATHS = {name: paths(config) for name, config in BUILT.items()}
VALUES = DATA | st.sampled_from(
    [
        0,
        1,
        -1,
        2,
        16,
        2**31 - 1,
        2**31,
        2**63,
        0.0,
        0.5,
        1.0,
        -0.5,
        1e30,
        math.nan,
        math.inf,
        [],
        {},
    ]
)


def nested(path: str, value: Any) -> dict[str, Any]:
    for part in reversed(path.split(".")):
        value = {part: value}
    return value


def numbers(config: hyperparams.Config):
    """Each number in a config, with the type of its field."""
    for name, spec in type(config)._fields().items():
        value = config.__dict__[name]
        if isinstance(value, hyperparams.Config):
            yield from numbers(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"{type(config).__name__}.{name}", value, spec.type


@st.composite
def changes(draw):
    name = draw(st.sampled_from(EXPERIMENTS))
    chosen = draw(st.lists(st.sampled_from(PATHS[name]), min_size=1, max_size=4))
    return name, [nested(path, draw(VALUES)) for path in chosen]


@fuzz.examples()
@given(change=changes(), one_of_ten=st.integers(0, 9))
def test_values_of_every_kind_give_a_config_or_a_config_error(change, one_of_ten):
    name, overrides = change
    config = copy.deepcopy(BUILT[name])
    before = config.as_dict()
    for values in overrides:
        try:
            config.override(values)
        except hyperparams.ConfigError:
            # All or nothing.
            assert repr(config.as_dict()) == repr(before)
        before = config.as_dict()
    for where, value, kind in numbers(config):
        assert kind.accepts_exactly(value), where
    if one_of_ten == 0:  # it takes a hundred times as long as the rest
        again = copy.deepcopy(BUILT[name])
        again.override(config.to_yaml())
        assert repr(again.as_dict()) == repr(before)
    for check in (config.validate, config.validate_for_run):
        try:
            check()
        except hyperparams.ConfigError as error:
            problems = error.problems
        else:
            continue
        assert all(problem.message for problem in problems)


@fuzz.examples()
@given(change=changes())
def test_the_schema_and_the_config_agree_about_numbers(change):
    """What the schema refuses, the config refuses too; the other way round it knows less."""
    jsonschema = pytest.importorskip("jsonschema", reason="comes with hortus[dev]")
    name, overrides = change
    config = copy.deepcopy(BUILT[name])
    validator = _validator(jsonschema, name)
    for values in overrides:
        leaf: Any = values
        while isinstance(leaf, dict) and len(leaf) == 1:
            leaf = next(iter(leaf.values()))
        if isinstance(leaf, bool) or not isinstance(leaf, (int, float)) or not math.isfinite(leaf):
            continue
        accepted = True
        try:
            config.override(json.loads(json.dumps(values)))
        except hyperparams.ConfigError:
            accepted = False
        if not accepted:
            continue
        plain = json.loads(json.dumps(config.as_dict()))
        complaints = list(validator.iter_errors(plain))
        assert not complaints, f"{values}: {complaints[0].message}"


_VALIDATORS: dict[str, Any] = {}


def _validator(jsonschema: Any, name: str) -> Any:
    if name not in _VALIDATORS:
        schema = json.loads(json.dumps(hyperparams.json_schema(BUILT[name])))
        _VALIDATORS[name] = jsonschema.Draft202012Validator(schema)
    return _VALIDATORS[name]


def test_the_walk_sees_numbers():
    config = exp_factory.get_exp_config(EXPERIMENTS[0])
    with warnings.catch_warnings():
        found = {where for where, _, _ in numbers(config)}
    assert {"TrainerConfig.train_steps", "ResNet.model_id", "Losses.l2_weight_decay"} <= found
    assert isinstance(type(config.trainer)._fields()["train_steps"].type, types.Number)
