"""The manifest of a checkpoint: everything about it that is not a tensor."""

import dataclasses
import json
import os
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Optional

from hortus.core.checkpoints.errors import CheckpointError, CorruptCheckpointError

NAME = "manifest.json"
FORMAT = "hortus-checkpoint"
# Raised when an older reader would misread what is written.
VERSION = 1


@dataclasses.dataclass
class Manifest:
    """What `manifest.json` says.

    Attributes:
        step: the training step.
        engine: Keras backend that wrote it; only told, never needed.
        keras: version of Keras that wrote it.
        created: time of writing, ISO 8601, UTC.
        items: name of each item to its kind: "layer", "optimizer", "metric", "seed", "variable",
            "group", "state" or "files".
        variables: name of each stored tensor to its `shape`, `dtype` and `kind`.
        aliases: further names of tensors that several items share, to the stored name.
        modules: name of each of the model's `checkpoint_items` to `{name within it: stored name}`.
        state: what the items' `get_state` returned.
        hosts: the number of hosts that wrote files of their own.
        files: path of each file within the folder to its `bytes` and `crc32`.
        config: the config of the run, if it was given.
    """

    step: int
    engine: str = ""
    keras: str = ""
    created: str = ""
    items: dict[str, str] = dataclasses.field(default_factory=dict)
    variables: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)
    modules: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    state: dict[str, Any] = dataclasses.field(default_factory=dict)
    hosts: int = 1
    files: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    config: Optional[Any] = None

    def to_bytes(self) -> bytes:
        """The content of the file, with a checksum of itself."""
        content = {"format": FORMAT, "format_version": VERSION, **dataclasses.asdict(self)}
        content["crc32"] = _checksum(content)
        return _pretty(content).encode()

    @classmethod
    def read(cls, folder: str) -> "Manifest":
        """Reads and checks the manifest of the checkpoint in `folder`.

        Raises:
            CorruptCheckpointError: there is none, or it is damaged.
            CheckpointError: a newer hortus wrote it.
        """
        path = os.path.join(folder, NAME)
        try:
            with open(path, "rb") as file:
                content = json.loads(file.read())
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']!r}")
        except FileNotFoundError:
            raise CorruptCheckpointError(f"{path} is missing.") from None
        except OSError as error:
            raise CorruptCheckpointError(f"{path} cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptCheckpointError(
                f"{path} is truncated or no manifest of a checkpoint: {error}."
            ) from error
        version = content.get("format_version", 0)
        if not _is_count(version):
            raise CorruptCheckpointError(f"{path}: format_version is {version!r}, not a number.")
        if version > VERSION:
            raise CheckpointError(
                f"{path} has format version {content['format_version']}; this hortus reads up to "
                f"{VERSION}. Use the newer hortus that wrote it."
            )
        told = content.pop("crc32", None)
        if told != _checksum(content):
            raise CorruptCheckpointError(f"{path} was changed after it was written.")
        known = {field.name for field in dataclasses.fields(cls)}
        given = {key: value for key, value in content.items() if key in known}
        for name, (is_right, expected) in _FIELDS.items():
            if name in given and not is_right(given[name]):
                raise CorruptCheckpointError(
                    f"{path}: {name} is not {expected}, but {_shortened(given[name])}."
                )
        if "step" not in given:
            raise CorruptCheckpointError(f"{path} has no step.")
        return cls(**given)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_file_name(value: Any) -> bool:
    """Whether it is a path within the checkpoint's folder."""
    parts = value.split("/")
    return not os.path.isabs(value) and "\0" not in value and not {"", ".", ".."} & {*parts}


def _is_variable(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("shape"), list)
        and all(map(_is_count, value["shape"]))
        and _is_text(value.get("dtype"))
        and _is_text(value.get("kind"))
    )


def _is_file(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and _is_count(value.get("bytes"))
        and _is_text(value.get("crc32"))
        and re.fullmatch("[0-9a-f]{8}", value["crc32"]) is not None
    )


def _is_table(is_value: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether something maps texts to such values."""
    return lambda value: isinstance(value, dict) and all(map(is_value, value.values()))


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "step": (_is_count, "a number from 0 on"),
    "engine": (_is_text, "a text"),
    "keras": (_is_text, "a text"),
    "created": (_is_text, "a text"),
    "items": (_is_table(_is_text), "a table of kinds"),
    "variables": (_is_table(_is_variable), "a table of shapes, dtypes and kinds"),
    "aliases": (_is_table(_is_text), "a table of names"),
    "modules": (_is_table(_is_table(_is_text)), "a table of tables of names"),
    "state": (_is_table(lambda value: True), "a table"),
    "hosts": (_is_count, "a number from 0 on"),
    "files": (
        lambda value: _is_table(_is_file)(value) and all(map(_is_file_name, value)),
        "a table of the files in the folder, with their bytes and crc32",
    ),
}
"""What a field has to be, and how that is called."""


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def as_json(value: Any, where: str) -> Any:
    """A copy of plain JSON values; NumPy scalars become numbers, tuples lists.

    Raises:
        CheckpointError: something else is in it; the message says where.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise CheckpointError(f"{where} has the key {key!r}; JSON needs strings")
        return {key: as_json(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if hasattr(value, "as_dict"):
        return as_json(value.as_dict(), where)
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return as_json(value.tolist(), where)
    raise CheckpointError(
        f"{where} is a {type(value).__name__}, which JSON cannot hold. Return numbers, strings, "
        "lists and dicts from get_state, or write files in save_files."
    )


def _pretty(content: Mapping[str, Any]) -> str:
    """JSON with a line per entry and per entry of its entries, and none within."""
    lines = []
    for key, value in content.items():
        text = json.dumps(value)
        if isinstance(value, Mapping) and value:
            inner = [f"  {json.dumps(name)}: {json.dumps(part)}" for name, part in value.items()]
            text = "{\n" + ",\n".join(inner) + "\n }"
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x}"
