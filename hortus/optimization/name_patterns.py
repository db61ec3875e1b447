"""Choose variables by regular expressions on their names."""

import re
from typing import Any, Optional, Sequence, Union

Patterns = Optional[Union[str, Sequence[str]]]
"""One regular expression, several, or none."""


class NamePatterns:
    """Regular expressions that are searched for in the names of variables.

    A variable is known by its path (`backbone/stem/kernel`), by its last name (`kernel`, so that
    `^bias` works), and by the path with the `:0` that older configs end their patterns with.

    Args:
        patterns: one expression, several, or none, which matches nothing.
    """

    def __init__(self, patterns: Patterns = None):
        self.patterns = [patterns] if isinstance(patterns, str) else list(patterns or ())
        self._compiled = [_compile(pattern) for pattern in self.patterns]

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def match(self, variable: Any) -> bool:
        """Whether any of the expressions is found in a name of the variable."""
        path = getattr(variable, "path", variable.name)
        names = (path, f"{path}:0", variable.name)
        return any(pattern.search(name) for pattern in self._compiled for name in names)


def _compile(pattern: str) -> re.Pattern:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
