"""Where the value of a config field came from."""

import dataclasses
from typing import Optional


@dataclasses.dataclass(frozen=True)
class Origin:
    """A place that set a value: `str()` gives `file.yaml:12`, `--params_override`, `default`."""

    name: str
    line: Optional[int] = None

    def __str__(self) -> str:
        return self.name if self.line is None else f"{self.name}:{self.line}"

    @property
    def is_explicit(self) -> bool:
        """Whether a user set the value, in a file, by a flag or in code."""
        return self != DEFAULT and not self.name.startswith("experiment ")


DEFAULT = Origin("default")
CODE = Origin("code")
