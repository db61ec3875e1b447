"""Rules between values of a config: `'a.b <= c.d'`, `'task.train_data.is_training != None'`."""

import operator
import re
from collections.abc import Callable
from typing import Any, Optional, Union

from hortus.hyperparams.errors import ConfigError

_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_RULE = re.compile(r"^\s*(?P<left>[\w.]+)\s*(?P<relation>==|!=|<=|>=|<|>)\s*(?P<right>.+?)\s*$")
_LITERALS = {"None": None, "null": None, "True": True, "true": True, "False": False, "false": False}
_ABSENT: Any = object()


def violation(restriction: Union[str, Callable], config: Any) -> Optional[str]:
    """What the restriction finds wrong with the config, or None."""
    if callable(restriction):
        return restriction(config) or None
    rule = _RULE.match(restriction)
    if rule is None:
        known = ", ".join(_RELATIONS)
        raise ConfigError(
            f"restriction {restriction!r}: expected 'a.b RELATION c.d', one of {known}"
        )
    left = _lookup(rule["left"], config, restriction)
    right = _lookup(rule["right"], config, restriction, or_literal=True)
    if left is _ABSENT or right is _ABSENT:
        return None  # about a part that this config does not use
    try:
        holds = _RELATIONS[rule["relation"]](left, right)
    except TypeError:
        holds = False
    if holds:
        return None
    sides = [_shown(rule["left"], left, config)]
    if _is_path(rule["right"], config):
        sides.append(_shown(rule["right"], right, config))
    return f"{restriction!r} does not hold: {' and '.join(sides)}"


def _is_path(text: str, config: Any) -> bool:
    return text.split(".")[0] in config


def _lookup(text: str, config: Any, restriction: str, or_literal: bool = False) -> Any:
    if or_literal and not _is_path(text, config):
        return _literal(text)
    value = config
    for name in text.split("."):
        if value is None:
            return _ABSENT
        keys = value._keys() if hasattr(value, "_keys") else ()
        if name not in keys:
            raise ConfigError(f"restriction {restriction!r}: {text} names nothing in the config")
        if name not in value._visible_keys():
            return _ABSENT
        value = getattr(value, name)
    return value


def _literal(text: str) -> Any:
    if text in _LITERALS:
        return _LITERALS[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text.strip("'\"")


def _shown(path: str, value: Any, config: Any) -> str:
    return f"{path} is {value!r} ({config.origin(path)})"
