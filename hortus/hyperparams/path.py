"""Dotted paths into a config: `task.model.heads[0].size`."""

import re
from typing import Optional, Union

Path = tuple[Union[str, int], ...]

_FIRST = re.compile(r"\s*([^\W\d][\w-]*)\s*")
_NEXT = re.compile(
    r"""(?: \.\s* (?P<name> [^\W\d][\w-]*)
      | \.\s* (?P<dotted> \d{1,9}) (?![\w-])
      | \[\s* (?P<index> \d{1,9}) \s*\] ) \s*""",
    re.VERBOSE,
)


def format_path(path: Path) -> str:
    """`('task', 'heads', 0, 'size')` -> `'task.heads[0].size'`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if len(part) <= 60 else f"{part[:57]}..."
            text += f".{name}" if text else name
    return text


def parse_path(text: str) -> Optional[Path]:
    """The opposite of `format_path`; an index may be written `.0` too. None for other text."""
    match = _FIRST.match(text)
    if match is None:
        return None
    path: list[Union[str, int]] = [match[1]]
    while match.end() < len(text):
        match = _NEXT.match(text, match.end())
        if match is None:
            return None
        path.append(match["name"] or int(match["dotted"] or match["index"]))
    return tuple(path)
