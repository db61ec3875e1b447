"""What a look at a data set finds."""

import dataclasses
from collections.abc import Sequence
from typing import Literal

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
_SHOWN = 5


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing to know about a data set.

    An error stops training or makes it learn the wrong thing; a warning deserves a look; a note is
    a fact, such as the number of images.
    """

    level: Level
    what: str
    """The whole finding in a sentence or a small table, for a person."""
    where: tuple[str, ...] = ()
    """Files, records or lines that it is about; perhaps the first few of them only."""
    count: int = 1
    """How many examples it is about."""

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"level is one of {', '.join(LEVELS)}, got {self.level!r}")

    def __str__(self) -> str:
        lines = [f"{self.level}: {self.what}"]
        lines += [f"  {place}" for place in self.where[:_SHOWN]]
        more = max(self.count, len(self.where)) - _SHOWN
        if self.where and more > 0:
            lines.append(f"  and {more} more")
        return "\n".join(lines)


def worst(findings: Sequence[Finding]) -> Level:
    """The gravest level among findings; `note` for none."""
    return min((finding.level for finding in findings), key=LEVELS.index, default="note")
