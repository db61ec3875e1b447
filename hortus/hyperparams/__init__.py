"""Typed, checked experiment configs that remember where each value came from."""

from hortus.hyperparams.base_config import Config, inert
from hortus.hyperparams.bounds import (
    AnyFloat,
    AnyInt,
    FiniteFloat,
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PositiveLong,
    Seed,
    also,
    ge,
    gt,
    le,
    lt,
)
from hortus.hyperparams.diff import Difference, diff, walk
from hortus.hyperparams.errors import (
    ConfigError,
    ConfigWarning,
    LockedError,
    OutOfBoundsError,
    RestrictionError,
    UnknownKeyError,
    WrongTypeError,
    did_you_mean,
    near_names,
)
from hortus.hyperparams.oneof import OneOfConfig
from hortus.hyperparams.origin import Origin
from hortus.hyperparams.overrides import (
    Overrides,
    load_overrides,
    override_params_dict,
    parse_overrides,
)
from hortus.hyperparams.schema import describe_bounds, describe_field, json_schema

__all__ = [
    "AnyFloat",
    "AnyInt",
    "Config",
    "ConfigError",
    "ConfigWarning",
    "Difference",
    "FiniteFloat",
    "Fraction",
    "LockedError",
    "NonNegativeFloat",
    "NonNegativeInt",
    "OneOfConfig",
    "Origin",
    "OutOfBoundsError",
    "Overrides",
    "PositiveFloat",
    "PositiveInt",
    "PositiveLong",
    "RestrictionError",
    "Seed",
    "UnknownKeyError",
    "WrongTypeError",
    "also",
    "describe_bounds",
    "describe_field",
    "did_you_mean",
    "diff",
    "ge",
    "gt",
    "inert",
    "json_schema",
    "le",
    "load_overrides",
    "lt",
    "near_names",
    "override_params_dict",
    "parse_overrides",
    "walk",
]
