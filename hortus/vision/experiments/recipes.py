"""The YAML files that change an experiment, by what their first lines say."""

import dataclasses
import functools
import pathlib
import re

FOLDER = pathlib.Path(__file__).parent / "yaml"
_EXPERIMENT = re.compile(r"^# experiment: (\w+)$", re.MULTILINE)
_MEASURED = re.compile(r"^# measured: (.+)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One of them."""

    path: pathlib.Path
    experiment: str
    """What it changes."""
    measured: str
    """The result, in a word; empty for one that nobody has measured."""


@functools.cache
def all_recipes() -> tuple[Recipe, ...]:
    """Those of the package, by path."""
    found = []
    for path in sorted(FOLDER.glob("*/*.yaml")):
        text = path.read_text(encoding="utf-8")
        experiment, measured = _EXPERIMENT.search(text), _MEASURED.search(text)
        if experiment:
            found.append(Recipe(path, experiment[1], measured[1] if measured else ""))
    return tuple(found)


def results(experiment: str) -> list[str]:
    """What was measured with recipes of an experiment."""
    return [
        f"{recipe.measured} ({recipe.path.name})"
        for recipe in all_recipes()
        if recipe.experiment == experiment and recipe.measured
    ]
