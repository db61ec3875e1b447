"""Every number of every config has bounds, in its type, in the schema and in the description."""

import dataclasses
import importlib
import inspect
import math
import pkgutil
import typing

import pytest

import hortus.optimization.configs
import hortus.vision.configs
from hortus import hyperparams
from hortus.core import config_definitions, exp_factory
from hortus.hyperparams import types
from hortus.hyperparams.bounds import Bounds
from hortus.vision import registry_imports  # noqa: F401


def config_classes() -> list[type[hyperparams.Config]]:
    """All config classes of the package."""
    modules = [config_definitions]
    for package in (hortus.optimization.configs, hortus.vision.configs):
        found = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        names = [info.name for info in found if not info.name.endswith("_test")]
        modules += map(importlib.import_module, names)
    classes = {
        cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, hyperparams.Config)
    }
    return sorted(classes, key=lambda cls: f"{cls.__module__}.{cls.__qualname__}")


def numbers(kind: types.Type) -> list[types.Number]:
    """The numbers in a type, those of its items and options included."""
    if isinstance(kind, types.Number):
        return [kind]
    if isinstance(kind, types.FixedTuple):
        inner = list(kind.items)
    elif isinstance(kind, types.Either):
        inner = list(kind.options)
    elif isinstance(kind, (types.List, types.Dict)):
        inner = [kind.item]
    else:
        inner = []
    return [number for one in inner for number in numbers(one)]


def has_bounds(number: types.Number) -> bool:
    """Whether both ends of a whole number are given, and whether a float says what it may be."""
    extras = typing.get_args(number.annotation)[1:]
    if not any(isinstance(extra, Bounds) for extra in extras):
        return False
    bounds = number.bounds
    return number.plain is float or (bounds.low is not None and bounds.high is not None)


def numeric_fields() -> list[tuple[type[hyperparams.Config], str]]:
    return [
        (cls, name)
        for cls in config_classes()
        for name, spec in cls._fields().items()
        if numbers(spec.type) and name in inspect.get_annotations(cls)
    ]


def test_the_walk_finds_the_configs():
    names = {cls.__name__ for cls in config_classes()}
    assert {"TrainerConfig", "SGDConfig", "ResNet", "RetinaNetHead", "Losses"} <= names
    assert len(numeric_fields()) > 250


def test_every_number_has_bounds():
    missing = [
        f"{cls.__module__}.{cls.__name__}.{name}"
        for cls, name in numeric_fields()
        if not all(map(has_bounds, numbers(cls._fields()[name].type)))
    ]
    assert missing == []


def test_no_number_may_be_infinite_or_not_a_number():
    for cls, name in numeric_fields():
        for number in numbers(cls._fields()[name].type):
            for value in (math.nan, math.inf, -math.inf):
                assert not number.accepts_exactly(value), f"{cls.__name__}.{name}"


@pytest.mark.parametrize("value", [10**30, -(10**30)])
def test_a_huge_number_is_refused_or_a_float(value):
    for cls, name in numeric_fields():
        for number in numbers(cls._fields()[name].type):
            if number.plain is int:
                assert number.is_out_of_bounds(value), f"{cls.__name__}.{name}"


def test_the_schema_of_an_experiment_has_the_bounds():
    config = exp_factory.get_exp_config("retinanet_resnetfpn_coco")
    properties = hyperparams.json_schema(config)["properties"]
    trainer = properties["trainer"]["properties"]
    assert trainer["steps_per_loop"]["minimum"] == 1
    assert trainer["summary_interval"]["minimum"] == 0
    steps = trainer["validation_steps"]["anyOf"]
    assert steps == [{"minimum": 1, "maximum": 2**31 - 1}, {"enum": [-1]}]
    model = properties["task"]["properties"]["model"]["properties"]
    norm = model["norm_activation"]["properties"]
    assert (norm["norm_momentum"]["minimum"], norm["norm_momentum"]["maximum"]) == (0, 1)
    assert norm["norm_epsilon"]["exclusiveMinimum"] == 0
    assert model["input_size"]["items"]["minimum"] == 1


@pytest.mark.parametrize(
    "change",
    [
        "trainer.steps_per_loop=0",
        "trainer.steps_per_loop=-1",
        "trainer.summary_interval=-1",
        "trainer.checkpoint_interval=-1",
        "trainer.validation_interval=-1",
        "trainer.validation_steps=0",
        "trainer.train_steps=99999999999999999999",
        "runtime.seed=-1",
        "task.model.norm_activation.norm_momentum=.nan",
        "task.losses.l2_weight_decay=.inf",
        "trainer.optimizer_config.learning_rate.constant.learning_rate=.nan",
        "task.model.input_size=[0, 32, 3]",
    ],
)
def test_values_that_looped_without_end_or_trained_nothing_are_refused(change):
    config = exp_factory.get_exp_config("resnet_imagenet")
    before = config.as_dict()
    with pytest.raises(hyperparams.OutOfBoundsError):
        config.override(change)
    assert config.as_dict() == before


def test_a_config_of_ones_own_needs_no_bounds():
    @dataclasses.dataclass
    class Own(hyperparams.Config):
        size: int = 5
        rate: float = 0.1

    own = Own(size=-(10**30))
    assert (own.size, own.rate) == (-(10**30), 0.1)
    with pytest.raises(hyperparams.OutOfBoundsError, match="rate: expected a finite number"):
        own.rate = math.nan
