"""What the checks of all tasks look at alike: which data there is, and copies in it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hortus.vision.data.checks.findings import Finding, Level
from hortus.vision.data.raw_images import is_set

_KEPT = 20
"""Places that a finding names at most."""


def named_splits(task_config: Any) -> dict[str, Any]:
    """The configs of training and validation data that name any, by their field."""
    splits = {"train_data": task_config.train_data, "validation_data": task_config.validation_data}
    return {name: params for name, params in splits.items() if is_set(params)}


def no_data(example: str) -> Finding:
    """That there is nothing to look at.

    Args:
        example: what `input_path` could be, and the setting of `file_type`.
    """
    return Finding(
        "error", f"no data is named: set task.train_data.input_path, for instance to {example}"
    )


def some(level: Level, what: str, where: Sequence[str]) -> Finding:
    """A finding about places, of which it names the first."""
    return Finding(level, f"{what}: {len(where)}", tuple(where[:_KEPT]), len(where))


def copies_across(seen: Mapping[str, Mapping[bytes, str]]) -> Iterator[Finding]:
    """Images of the second split that are in the first too.

    Args:
        seen: by the name of each split, where an image with certain pixels is.
    """
    if len(seen) != 2:
        return
    (first_name, first), (name, here) = seen.items()
    shared = [f"{place} = {first[key]}" for key, place in here.items() if key in first]
    if shared:
        yield some(
            "error",
            f"images of {name} that are in {first_name} too, so that the metrics say too much "
            f"({len(shared) / len(here):.1%} of {name})",
            shared,
        )
