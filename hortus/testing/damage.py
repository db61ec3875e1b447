"""Damages bytes as disks, kills and people do, and JSON as whoever means harm does."""

import random
from typing import Any

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    -(10**400),
    1.5,
    1e308,
    -1e308,
    5e-324,
    float("nan"),
    float("inf"),
    "",
    "x",
    "../../x",
    "\ud800",
    "a\0b",
    "<script>",
    [],
    [[]],
    {},
    {"a": {"b": []}},
    {"": None},
)
"""What no reader expects where it expects something else."""


def bytes_like(content: bytes, rng: random.Random) -> bytes:
    """The content with bytes lost, changed, doubled or cut off."""
    if not content:
        return rng.randbytes(rng.randint(0, 20))
    for _ in range(rng.choice((1, 1, 2, 6))):
        at, length = rng.randrange(len(content) + 1), rng.choice((1, 2, 8, 60))
        how = rng.randrange(5)
        if how == 0:
            content = content[:at]
        elif how == 1:
            content = content[:at] + rng.randbytes(length) + content[at + length :]
        elif how == 2:
            content = content[:at] + content[at + length :]
        elif how == 3:
            content = content[:at] + content[at : at + length] + content[at:]
        else:
            content = content[:at] + rng.choice((b"\xff", b"\0", b"{", b"]", b'"', b"-"))
    return content


def data_like(data: Any, rng: random.Random) -> Any:
    """The data with a few of its parts, anywhere in it, replaced, lost or added."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = _changed(data, rng)
    return data


def _changed(data: Any, rng: random.Random) -> Any:
    if isinstance(data, dict) and data and rng.random() < 0.9:
        key = rng.choice(list(data))
        how = rng.random()
        if how < 0.15:
            return {name: value for name, value in data.items() if name != key}
        if how < 0.25:
            return {**data, rng.choice(("x", "", "a.b")): rng.choice(VALUES)}
        return {**data, key: _changed(data[key], rng)}
    if isinstance(data, (list, tuple)) and data and rng.random() < 0.9:
        place = rng.randrange(len(data))
        if rng.random() < 0.2:
            return [*data[:place], *data[place + 1 :]]
        return [*data[:place], _changed(data[place], rng), *data[place + 1 :]]
    return rng.choice(VALUES)
