"""What can be wrong with a config, said so that a user can mend it."""

import dataclasses
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union

from hortus.hyperparams.path import Path, format_path


def near_names(name: object, known: Iterable[str]) -> list[str]:
    """Up to three known names that a misspelt `name` may have meant, best first."""
    names = [str(other) for other in known]
    by_lower = {other.lower(): other for other in names}
    wanted = str(name).lower()
    matches = difflib.get_close_matches(wanted, list(by_lower), n=3, cutoff=0.55)
    near = [by_lower[match] for match in matches]
    return near or [other for other in names if wanted and wanted in other.lower()][:3]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`' Did you mean a, b or c?'`, or what is known when nothing is near."""
    known = [str(other) for other in known]
    near = near_names(name, known)
    if near:
        listed = near[0] if len(near) == 1 else f"{', '.join(near[:-1])} or {near[-1]}"
        return f" Did you mean {listed}?"
    if not known:
        return ""
    listed = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    return f" Known: {listed}."


def short(value: Any) -> str:
    """The value on one short line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python does not print an int of 5000 digits
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= 60 else f"{text[:57]}..."


_SHOWN = 20
"""Problems that one error lists: more would hide the first ones."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """One thing wrong at one place of a config."""

    path: Path
    message: str
    origin: Optional[str] = None
    kind: Optional[type["ConfigError"]] = None

    def __str__(self) -> str:
        where = format_path(self.path)
        if self.origin:
            where = f"{where} ({self.origin})" if where else self.origin
        return f"{where}: {self.message}" if where else self.message


class ConfigError(ValueError):
    """A config, a config file or an override is wrong; `str(error)` is for the user."""

    def __init__(self, problems: Union[str, Problem, Sequence[Problem]]):
        if isinstance(problems, str):
            problems = [Problem((), problems)]
        elif isinstance(problems, Problem):
            problems = [problems]
        self.problems = list(problems)
        super().__init__(str(self))

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        lines = [f"\n  - {problem}" for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            lines.append(f"\n  - and {len(self.problems) - _SHOWN} more")
        return f"{len(self.problems)} problems in the config:{''.join(lines)}"

    def __reduce__(self) -> Any:
        return type(self), (self.problems,)


class UnknownKeyError(ConfigError, KeyError, AttributeError):
    """A key that the config does not have."""


class WrongTypeError(ConfigError, TypeError):
    """A value that its field cannot hold."""


class OutOfBoundsError(ConfigError):
    """A number that is too small, too large or not finite."""


class RestrictionError(ConfigError, KeyError):
    """Values that contradict one another."""


class LockedError(ConfigError):
    """A change of a locked config."""


class ConfigWarning(UserWarning):
    """Something in a config that works, but hardly as it was meant."""


def raise_problems(problems: Sequence[Problem]) -> None:
    """Raises all `problems` as one error, of the first one's kind; nothing when there are none."""
    if problems:
        raise (problems[0].kind or ConfigError)(problems)
