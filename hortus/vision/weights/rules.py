"""Rules from our names to other programs' names, written as data.

A rule is a pattern and a template: `"norm{i}_level{l}": "_norms/{l-min}/{i-1}"`. In a pattern,
`{x}` is a number and `{x:word}` any one part of a name. A pattern stands for a whole path or for
the beginning of one, up to a "/"; what follows it is kept. In a template, `{x}`, `{x+1}` and
`{x-y}` are put in, where `y` may be a number that the model gives, such as its finest level.
"""

import re
from collections.abc import Mapping
from typing import Optional, Union

Numbers = Mapping[str, int]

_FIELD = re.compile(r"\{(\w+)(:word)?\}")
_TERM = re.compile(r"\{(\w+)(?:([+-])(\w+))?\}")


class Rules:
    """An ordered table of rules; the first whose pattern fits counts.

    Args:
        table: pattern to template.
    """

    def __init__(self, table: Mapping[str, str]) -> None:
        self.table = dict(table)
        self._compiled = [(compile_pattern(p, "(?:/(?P<_rest>.*))?"), t) for p, t in table.items()]

    def __call__(self, path: str, numbers: Optional[Numbers] = None) -> Optional[str]:
        """What the rules make of `path`; None if none fits."""
        for pattern, template in self._compiled:
            found = pattern.fullmatch(path)
            if found:
                fields = found.groupdict()
                rest = fields.pop("_rest")
                theirs = fill(template, {**(numbers or {}), **fields})
                return "/".join(part for part in (theirs, rest) if part)
        return None


def compile_pattern(pattern: str, end: str = "") -> "re.Pattern[str]":
    """The regular expression of a pattern, each field a named group."""
    text, position = "", 0
    for field in _FIELD.finditer(pattern):
        text += re.escape(pattern[position : field.start()])
        text += f"(?P<{field[1]}>{'[^/]+' if field[2] else '[0-9]+'})"
        position = field.end()
    return re.compile(text + re.escape(pattern[position:]) + end)


def fill(template: str, values: Mapping[str, Union[str, int]]) -> str:
    """Puts values into a template."""

    def term(found: "re.Match[str]") -> str:
        name, sign, other = found.groups()
        if not sign:
            return str(values[name])
        by = int(other) if other.isdigit() else int(values[other])
        return str(int(values[name]) + (by if sign == "+" else -by))

    return _TERM.sub(term, template)
