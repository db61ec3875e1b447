"""Damaged overrides: each gives a valid config or a ConfigError, never another exception.

Real YAML files, and the same as JSON and as flags, are damaged as people and editors damage them:
bytes, lines, words and numbers are lost, doubled, moved or replaced. Each input follows from the
seed and its number alone.
"""

import copy
import functools
import json
import os
import pathlib
import random
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hortus import hyperparams
from hortus.core import exp_factory
from hortus.hyperparams.yaml_text import read_yaml
from hortus.testing import reference_dir
from hortus.vision import registry_imports  # noqa: F401

SEED = 20_240_817
CHUNKS = 5
YAML_INPUTS = 10_000
INPUTS = 12_000
"""All of them; those after the YAML files are JSON files and flags."""

EXPERIMENTS = {
    "image_classification": "resnet_imagenet",
    "maskrcnn": "maskrcnn_resnetfpn_coco",
    "retinanet": "retinanet_resnetfpn_coco",
    "semantic_segmentation": "seg_deeplabv3plus_pascal",
    "video_classification": "video_classification_kinetics400",
}
"""An experiment for each folder of YAML files, where the file does not name one."""

NUMBERS = "0 1 -1 2 7 16 255 1000000 99999999999999999999 0.5 1e-3 1e30 1e999 -0.0 .inf .nan 0x1F"
WORDS = f"""
{NUMBERS} null ~ true False off yes 1_0 010 0o17 1:30 2024-01-01 320 '' "" [] {{}} [[]] [null] [-1,]
{{a:}} {{a:1}} - ? : ::: , # #x ! !x !!str !!int !!python/tuple !!python/object/apply:os.getcwd
!!binary & &a * *a << | > |- >9 % @ ` --- ... = \\ "\\x" "\\u12" "\\ud800" ' " task model type
runtime trainer backbone resnet __class__ _locked override as_dict get restrictions default_params
"""
ALL_WORDS = [
    *WORDS.split(),
    *("a b", "\t", "\t\t", "\n", "\r\n", "\x00", "\x7f", "\x85", "\u2028", "\ufeff", "\U0001f600"),
]


# ---- damage ---------------------------------------------------------------------------------


def _damage_bytes(data: bytes, rng: random.Random) -> bytes:
    position = rng.randrange(len(data) + 1)
    how = rng.randrange(4)
    if how == 0:
        return data[:position] + bytes([rng.randrange(256)]) + data[position + 1 :]
    if how == 1:
        return (
            data[:position] + bytes([rng.choice(b"[]{}:,-#&*!|>'\"%@`?\t\n \\")]) + data[position:]
        )
    if how == 2:
        return data[:position] + data[position + rng.randint(1, 4) :]
    return data[:position]


def _damage_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    index, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    how = rng.randrange(6)
    if how == 0:
        del lines[index]
    elif how == 1:
        lines.insert(other, lines[index])
    elif how == 2:
        lines[index], lines[other] = lines[other], lines[index]
    elif how == 3:
        lines[index] = b" " * rng.randint(1, 4) + lines[index]
    elif how == 4:
        lines[index] = lines[index][rng.randint(1, 2) :]
    else:
        lines[index : index + 2] = [b" ".join(lines[index : index + 2])]
    return b"\n".join(lines)


def _damage_words(data: bytes, rng: random.Random) -> bytes:
    spans = [match.span() for match in re.finditer(rb"[\w.*/'\"-]+", data)]
    if not spans:
        return data + rng.choice(ALL_WORDS).encode()
    start, end = rng.choice(spans)
    new = rng.choice(ALL_WORDS).encode("utf-8", "replace")
    how = rng.randrange(4)
    if how == 0:
        other = rng.choice(spans)
        new = data[other[0] : other[1]]
    elif how == 1:
        new = data[start:end] + b" " + new
    return data[:start] + new + data[end:]


def _damage_numbers(data: bytes, rng: random.Random) -> bytes:
    spans = [match.span() for match in re.finditer(rb"(?<=[ ,\[])-?[0-9.]+(?=[,\]\n])", data)]
    if not spans:
        return _damage_words(data, rng)
    start, end = rng.choice(spans)
    return data[:start] + rng.choice(NUMBERS.split()).encode() + data[end:]


DAMAGES: list[Callable[[bytes, random.Random], bytes]] = [
    _damage_bytes,
    _damage_lines,
    _damage_words,
    _damage_numbers,
    _damage_numbers,
]


def damaged(text: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 8))):
        text = rng.choice(DAMAGES)(text, rng)
    return text


# ---- real files -----------------------------------------------------------------------------


def _files() -> list[tuple[str, bytes]]:
    """Experiment and content of each YAML file: our own, and the reference's."""
    root = pathlib.Path(__file__).resolve().parent.parent
    folders = [root / "hortus" / "vision" / "experiments" / "yaml"]
    folder = reference_dir()
    folders.append(folder / "yamls")
    entries = json.loads((folder / "yamls.json").read_text())
    named = {entry["path"]: entry["experiment"] for entry in entries}
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*.yaml")):
            name = path.relative_to(folder).as_posix()
            experiment = named.get(name, EXPERIMENTS[name.split("/")[0]])
            found.append((experiment, path.read_bytes()))
    return found


def _sections(text: bytes) -> list[bytes]:
    """The parts of a file, such as `task: model:`, each with the lines that lead to it.

    They are read several times as fast as the whole, and have all that a whole file has.
    """
    lines = text.split(b"\n")
    sections = []
    for index, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if indent != 2 or not line.rstrip().endswith(b":"):
            continue
        end = index + 1
        while end < len(lines) and (lines[end][:3].isspace() or not lines[end].strip()):
            end += 1
        top = max(i for i in range(index) if lines[i][:1].strip() and not lines[i].startswith(b"#"))
        sections.append(b"\n".join([lines[top], *lines[index:end], b""]))
    return sections or [text]


@functools.cache
def _as_json(text: bytes) -> bytes:
    values, _ = read_yaml(text.decode(), hyperparams.Origin("f"), with_lines=True)
    return json.dumps(values, indent=1).encode()


@functools.cache
def _as_flag(text: bytes) -> bytes:
    """`a.b=1,c=[2, 3]`."""
    values, _ = read_yaml(text.decode(), hyperparams.Origin("f"), with_lines=True)

    def parts(path: str, value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from parts(f"{path}.{key}" if path else key, inner)
        else:
            yield f"{path}={json.dumps(value)}"

    return ",".join(parts("", values)).encode()


# ---- the test -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pristine() -> Callable[[str], hyperparams.Config]:
    """A new config of an experiment; copied, which is quicker than to build it."""
    built: dict[str, hyperparams.Config] = {}

    def get(experiment: str) -> hyperparams.Config:
        if experiment not in built:
            built[experiment] = exp_factory.get_exp_config(experiment)
        return copy.deepcopy(built[experiment])

    return get


def _load(config: hyperparams.Config, content: bytes, notation: str, folder: str) -> None:
    if notation == "flag":
        # What is not UTF-8 in an argument reaches Python like this.
        text = content.decode("utf-8", "surrogateescape")
        config.override(hyperparams.parse_overrides(text, "--params_override"))
    else:
        path = os.path.join(folder, f"damaged.{notation}")
        with open(path, "wb") as file:
            file.write(content)
        config.override(hyperparams.load_overrides(path))
    config.validate()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_damaged_files_give_a_config_or_a_config_error(chunk, pristine, tmp_path):
    files = _files()
    sections = [(experiment, part) for experiment, text in files for part in _sections(text)]
    outcomes = {"valid": 0, "refused": 0}
    for number in range(chunk, INPUTS, CHUNKS):
        rng = random.Random(f"{SEED}/{number}")
        experiment, text = rng.choice(files if number % 20 == 0 else sections)
        notation = "yaml" if number < YAML_INPUTS else rng.choice(("json", "flag"))
        if notation != "yaml":
            text = (_as_json if notation == "json" else _as_flag)(text)
        content = damaged(text, rng)
        config = pristine(experiment)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hyperparams.ConfigWarning)
            try:
                _load(config, content, notation, str(tmp_path))
                plain = config.as_dict()
            except hyperparams.ConfigError:
                outcomes["refused"] += 1
                continue
            except Exception as error:
                where = f"input {number} of seed {SEED}, {notation} for {experiment}"
                raise AssertionError(f"{where}: {error!r}\n{content!r}") from error
            outcomes["valid"] += 1
            if outcomes["valid"] % 50 == 0:  # what was taken can be written and read again
                again = pristine(experiment)
                again.override(config.to_yaml())
                # As text, in which NaN is like NaN.
                assert repr(again.as_dict()) == repr(plain), f"input {number} of seed {SEED}"
    print(f"seed {SEED}, chunk {chunk}: {outcomes}")
    # Damage that is always noticed, or never, would test little.
    assert min(outcomes.values()) > INPUTS / CHUNKS / 20
