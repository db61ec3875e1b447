"""What happens to configs here, case by case, against what the Model Garden was seen to do.

A case must give the recorded result, or an error of the recorded type, unless DIFFERENT has it with
our outcome and the reason, which docs/from_model_garden.md tells to users.
"""

import dataclasses
import functools
import json
import pathlib
from typing import Any, Callable, Optional

import pytest

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory, registry
from hortus.hyperparams import Config
from hortus.optimization.configs import optimization_config
from hortus.testing import reference_dir
from hortus.vision import registry_imports  # noqa: F401
from hortus.vision.configs import retinanet

_CASES: dict[str, Callable[[], Any]] = {}


def case(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def register(run: Callable[[], Any]) -> Callable[[], Any]:
        _CASES[name] = run
        return run

    return register


@dataclasses.dataclass(frozen=True)
class Different:
    """Our outcome where it is not the recorded one, and why it is better."""

    reason: str
    result: Any = None
    error: Optional[type[Exception]] = None


DIFFERENT = {
    "csv list missing index": Different(
        "an index changes that item of the list which is there", result=[1, 4]
    ),
    "int for float field is kept as int": Different(
        "a value has the type of its field", result=[1.0, "float"]
    ),
    "type change str for int accepted": Different(
        "a wrong type is found at once, with path and origin", error=hyperparams.WrongTypeError
    ),
    "csv string starting with s gets quoted": Different(
        "the text is read, not rewritten: no first letter is special",
        result={"a": "sgd", "b": "hello"},
    ),
    "nested csv": Different(
        "the same values as data instead of as text",
        result={"a": 1, "b": 2, "c": {"a": 2, "b": 3}, "d": {"a": {"a": 5}}},
    ),
    "setattr unknown key": Different(
        "a misspelt attribute must not pass in silence", error=hyperparams.UnknownKeyError
    ),
    "setattr nested after lock on root": Different(
        "a locked config is locked at every depth", error=hyperparams.LockedError
    ),
    "restriction ['a.x == b'] with a=1,b=2,c.d=1": Different(
        "one kind of error for every restriction, which names the rule",
        error=hyperparams.RestrictionError,
    ),
    "restriction violated after override (train is_training None)": Different(
        "what the field cannot hold is refused where it is set", error=hyperparams.WrongTypeError
    ),
    "nested list in Config raises": Different("nested lists are plain data", result=[[1, 2], [3]]),
    "from_yaml roundtrip equal": Different(
        "fields are written in the order in which they are declared", result=[True, "task:\n  "]
    ),
}


def resnet() -> cfg.ExperimentConfig:
    return exp_factory.get_exp_config("resnet_imagenet")


def overridden(values: Any, path: str, is_strict: bool = True) -> Any:
    config = resnet()
    config.override(values, is_strict)
    return config.get(path)


def locked() -> cfg.ExperimentConfig:
    config = resnet()
    config.lock()
    return config


# ---- override -------------------------------------------------------------------------------

TRAIN_STEPS = "trainer.train_steps"


@case("dict override existing key strict")
def _() -> Any:
    return overridden({"trainer": {"train_steps": 7}}, TRAIN_STEPS)


@case("dict override unknown top key strict")
def _() -> Any:
    return overridden({"nope": 1}, "nope")


@case("dict override unknown nested key strict")
def _() -> Any:
    return overridden({"task": {"model": {"nope": 1}}}, "task.model.nope")


@case("dict override unknown nested key non-strict")
def _() -> Any:
    with pytest.warns(hyperparams.ConfigWarning, match=r"task\.model\.nope"):
        return overridden({"task": {"model": {"nope": 1}}}, "task.model.nope", is_strict=False)


@case("csv override")
def _() -> Any:
    config = resnet()
    config.override("trainer.train_steps=9,trainer.steps_per_loop=11")
    return [config.trainer.train_steps, config.trainer.steps_per_loop]


@case("csv override with spaces")
def _() -> Any:
    config = resnet()
    config.override("trainer.train_steps = 9, trainer.steps_per_loop = 11")
    return [config.trainer.train_steps, config.trainer.steps_per_loop]


@case("csv list by index a[0],a[1]")
def _() -> Any:
    config = Config({"a": [1, 2], "b": 0})
    config.override("a[0]=3,a[1]=4,b=1")
    return config.as_dict()


@case("csv list missing index")
def _() -> Any:
    config = Config({"a": [1, 2]})
    config.override("a[1]=4")
    return config.a


@case("yaml string override")
def _() -> Any:
    return overridden("trainer:\n  train_steps: 5\n", TRAIN_STEPS)


@case("json string override")
def _() -> Any:
    return overridden('{"trainer": {"train_steps": 6}}', TRAIN_STEPS)


@case("scientific float without dot in yaml (1e-3)")
def _() -> Any:
    value = overridden("task: {losses: {l2_weight_decay: 1e-3}}", "task.losses.l2_weight_decay")
    return [value, type(value).__name__]


@case("int for float field is kept as int")
def _() -> Any:
    value = overridden("task: {losses: {l2_weight_decay: 1}}", "task.losses.l2_weight_decay")
    return [value, type(value).__name__]


@case("type change str for int accepted")
def _() -> Any:
    return overridden({"trainer": {"train_steps": "abc"}}, TRAIN_STEPS)


@case("override None on sub-config")
def _() -> Any:
    return overridden({"task": {"model": None}}, "task.model")


@case("override dict onto None optional sub-config (ema)")
def _() -> Any:
    path = "trainer.optimizer_config.ema"
    ema = overridden(f"{path}.average_decay=0.5", path)
    return [type(ema).__name__, ema.as_dict()]


@case("gs path csv value")
def _() -> Any:
    return overridden("task.train_data.input_path=gs://b/train*", "task.train_data.input_path")


@case("csv string starting with s gets quoted")
def _() -> Any:
    return hyperparams.parse_overrides("a=sgd,b=hello").values


@case("nested csv")
def _() -> Any:
    return hyperparams.parse_overrides("a=1,b=2,c.a=2,c.b=3,d.a.a=5").values


@case("malformed csv")
def _() -> Any:
    return hyperparams.parse_overrides("a=1,,b").values


@case("override after lock")
def _() -> Any:
    locked().override({"trainer": {"train_steps": 1}})


@case("reserved key override")
def _() -> Any:
    resnet().override({"_locked": True}, is_strict=False)


# ---- attributes -----------------------------------------------------------------------------


@case("setattr unknown key")
def _() -> Any:
    resnet().nope = 1


@case("setattr known key")
def _() -> Any:
    config = resnet()
    config.trainer.train_steps = 3
    return config.trainer.train_steps


@case("setattr after lock")
def _() -> Any:
    locked().runtime = cfg.RuntimeConfig()


@case("setattr nested after lock on root")
def _() -> Any:
    locked().trainer.train_steps = 4


@case("getattr unknown")
def _() -> Any:
    return resnet().nope


@case("contains")
def _() -> Any:
    return ["task" in resnet(), "nope" in resnet()]


@case("get with default")
def _() -> Any:
    return Config({"a": 1}).get("nope", 5)


@case("delattr")
def _() -> Any:
    config = Config({"a": 1, "b": 2})
    del config.a
    return config.as_dict()


@case("Config eq")
def _() -> Any:
    return resnet() == resnet()


# ---- OneOfConfig ----------------------------------------------------------------------------


@case("OneOf default type None as_dict")
def _() -> Any:
    return optimization_config.LrConfig().as_dict()


@case("OneOf type None get()")
def _() -> Any:
    return optimization_config.LrConfig().get()


@case("OneOf set type as_dict only exports chosen")
def _() -> Any:
    return optimization_config.LrConfig({"type": "cosine", "cosine": {"decay_steps": 5}}).as_dict()


@case("OneOf unknown type as_dict")
def _() -> Any:
    return optimization_config.LrConfig(type="bogus").as_dict()


@case("OneOf unknown type get()")
def _() -> Any:
    return optimization_config.LrConfig(type="bogus").get()


@case("OneOf override non-chosen branch then switch")
def _() -> Any:
    config = optimization_config.LrConfig(type="cosine")
    config.override({"stepwise": {"boundaries": [1]}})
    config.override({"type": "stepwise"})
    return config.as_dict()


# ---- restrictions ---------------------------------------------------------------------------


def _restricted(rule: str) -> str:
    Config({"a": 1, "b": 2, "c": {"d": 1}}, [rule]).validate()
    return "ok"


for _rule in (
    *(f"a {relation} b" for relation in ("==", "!=", "<", "<=", ">", ">=", "~")),
    "a.x == b",
    "a == 1",
    "a == None",
    "a != None",
    "c.d == a",
):
    _CASES[f"restriction ['{_rule}'] with a=1,b=2,c.d=1"] = functools.partial(_restricted, _rule)


@case("restrictions not checked at override time")
def _() -> Any:
    config = Config({"a": 1, "b": 2}, ["a < b"])
    config.override({"a": 5})
    return config.a


@case("restrictions per experiment")
def _() -> Any:
    names = exp_factory.exp_names()
    return {name: list(exp_factory.get_exp_config(name).restrictions) for name in names}


@case("restriction violated after override (train is_training None)")
def _() -> Any:
    config = resnet()
    config.override({"task": {"train_data": {"is_training": None}}})
    config.validate()


# ---- making and copying ---------------------------------------------------------------------


@case("list of dict becomes list of Config (attribute_heads)")
def _() -> Any:
    head = retinanet.RetinaNetHead({"attribute_heads": [{"name": "color", "size": 2}]})
    heads = head.attribute_heads
    return [[type(one).__name__ for one in heads], [one.as_dict() for one in heads]]


@case("tuple preserved")
def _() -> Any:
    return type(Config({"a": (1, 2)}).a).__name__


@case("replace()")
def _() -> Any:
    return cfg.TrainerConfig().replace(train_steps=3).train_steps


@case("from_args")
def _() -> Any:
    return (
        optimization_config.LrConfig.from_args("cosine", cosine={"decay_steps": 5})
        .get()
        .decay_steps
    )


@case("from_yaml roundtrip equal")
def _() -> Any:
    config = resnet()
    again = resnet()
    again.override(config.to_yaml())
    return [again == config, config.to_yaml()[:8]]


@case("dict in dataclass field unknown type object()")
def _() -> Any:
    Config({"a": object()})


@case("nested list in Config raises")
def _() -> Any:
    return Config({"a": [[1, 2], [3]]}).a


@case("set in Config raises")
def _() -> Any:
    Config({"a": {1, 2}})


# ---- registries -----------------------------------------------------------------------------


@case("unknown experiment")
def _() -> Any:
    exp_factory.get_exp_config("does_not_exist")


@case("duplicate register")
def _() -> Any:
    exp_factory.register_config_factory("resnet_imagenet")(resnet)


# ---- the comparison -------------------------------------------------------------------------

_ERRORS = {
    kind.__name__: kind for kind in (KeyError, ValueError, TypeError, AttributeError, LookupError)
}


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, Any]]:
    text = (reference_dir() / "golden" / "config_semantics.json").read_text()
    return {entry["case"]: entry for entry in json.loads(text)}


def test_every_recorded_case_is_run(recorded):
    assert set(_CASES) == set(recorded)
    assert len(_CASES) == 61
    assert set(DIFFERENT) <= set(_CASES)


@pytest.mark.parametrize("name", sorted(set(_CASES) - set(DIFFERENT)))
def test_the_same_happens(name, recorded):
    expected = recorded[name]
    if "error_type" in expected:
        with pytest.raises(
            (hyperparams.ConfigError, registry.RegistryError, AttributeError)
        ) as caught:
            _CASES[name]()
        assert isinstance(caught.value, _ERRORS[expected["error_type"]])
    else:
        _assert_contains(json.loads(json.dumps(_CASES[name]())), expected["result"])


@pytest.mark.parametrize("name", sorted(DIFFERENT))
def test_users_are_told(name):
    document = pathlib.Path(__file__).resolve().parent.parent / "docs" / "from_model_garden.md"
    assert f"| {DIFFERENT[name].reason} |" in document.read_text("utf-8")


@pytest.mark.parametrize("name", sorted(DIFFERENT))
def test_something_better_happens(name, recorded):
    ours = DIFFERENT[name]
    if ours.error is not None:
        with pytest.raises(ours.error):
            _CASES[name]()
        assert recorded[name].get("error_type") not in {
            base.__name__ for base in ours.error.__mro__
        }
    else:
        assert _CASES[name]() == ours.result
        assert recorded[name].get("result") != ours.result


def _assert_contains(ours: Any, theirs: Any) -> None:
    """Equality, but configs and lists of experiments may have more here."""
    if isinstance(theirs, dict):
        missing = theirs.keys() - ours.keys() - {"mock"}  # an experiment of their tests
        assert not missing
        for key in theirs.keys() & ours.keys():
            _assert_contains(ours[key], theirs[key])
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            _assert_contains(our, their)
    else:
        assert ours == theirs
        assert type(ours) is type(theirs)
