"""Rules between values of a config: `'a.b <= c.d'`, `'task.train_data.is_training != None'`."""

import operator
import re
from collections.abc import Callable
from typing import Any, Optional, Union

from hortus.hyperparams.errors import did_you_mean

_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_RULE = re.compile(r"\s*(?P<left>[\w.]+)\s*(?P<relation>==|!=|<=|>=|<|>)\s*(?P<right>.+?)\s*")
_WORDS = {"None": None, "null": None, "True": True, "true": True, "False": False, "false": False}
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_ABSENT: Any = object()


class _NowhereError(Exception):
    """A side of a rule is no path of the config and no value; the text says so."""


def violation(restriction: Union[str, Callable], config: Any) -> Optional[str]:
    """What the restriction finds wrong with the config, or None.

    A rule about a part that is null, or a branch that is not chosen, holds.
    """
    if callable(restriction):
        return _outcome(restriction, config)
    rule = _RULE.fullmatch(restriction)
    if rule is None:
        known = ", ".join(_RELATIONS)
        return f"restriction {restriction!r}: expected 'a.b RELATION c.d', with one of {known}"
    try:
        left, right = _value(rule["left"], config), _value(rule["right"], config)
    except _NowhereError as error:
        return f"restriction {restriction!r}: {error}"
    if left is _ABSENT or right is _ABSENT:
        return None
    try:
        if _RELATIONS[rule["relation"]](left, right):
            return None
    except TypeError:
        pass  # None or text against a number
    sides = [_shown(side, config) for side in (rule["left"], rule["right"])]
    return f"{restriction!r} does not hold: {' and '.join(filter(None, sides))}"


def _outcome(restriction: Callable, config: Any) -> Optional[str]:
    result = restriction(config)
    if result is False:
        return f"the restriction {getattr(restriction, '__name__', restriction)} does not hold"
    return None if result is True or not result else str(result)


def _value(text: str, config: Any) -> Any:
    """The value at a path, or of a literal; _ABSENT in a part that the config does not use."""
    if not _is_path(text, config):
        return _literal(text, config)
    value = config
    for name in text.split("."):
        if value is None:
            return _ABSENT
        keys = value._keys() if hasattr(value, "_keys") else ()
        if name not in keys:
            raise _NowhereError(f"{text} names nothing in the config.{did_you_mean(name, keys)}")
        if name not in value._visible_keys():
            return _ABSENT
        value = getattr(value, name)
    return value


def _is_path(text: str, config: Any) -> bool:
    return text.split(".")[0] in config


def _literal(text: str, config: Any) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[1] if quoted[1] is not None else quoted[2]
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        near = did_you_mean(text.split(".")[0], config._keys())
        raise _NowhereError(
            f"{text} names nothing in the config; quote it if it is text.{near}"
        ) from None


def _shown(side: str, config: Any) -> str:
    if not _is_path(side, config):
        return ""
    return f"{side} is {config.get(side)!r} ({config.origin(side)})"
