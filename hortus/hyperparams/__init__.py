"""Typed, checked experiment configs that remember where each value came from."""

from hortus.hyperparams.base_config import Config, inert
from hortus.hyperparams.diff import Difference, diff, walk
from hortus.hyperparams.errors import (
    ConfigError,
    ConfigWarning,
    LockedError,
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
from hortus.hyperparams.schema import describe_field, json_schema

__all__ = [
    "Config",
    "ConfigError",
    "ConfigWarning",
    "Difference",
    "LockedError",
    "OneOfConfig",
    "Origin",
    "Overrides",
    "RestrictionError",
    "UnknownKeyError",
    "WrongTypeError",
    "describe_field",
    "did_you_mean",
    "diff",
    "inert",
    "json_schema",
    "load_overrides",
    "near_names",
    "override_params_dict",
    "parse_overrides",
    "walk",
]
