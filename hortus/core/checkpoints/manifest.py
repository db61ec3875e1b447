"""The manifest of a checkpoint: everything about it that is not a tensor."""

import dataclasses
import json
import os
import zlib
from collections.abc import Mapping
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
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptCheckpointError(
                f"{path} is truncated or no manifest of a checkpoint: {error}."
            ) from error
        if content.get("format_version", 0) > VERSION:
            raise CheckpointError(
                f"{path} has format version {content['format_version']}; this hortus reads up to "
                f"{VERSION}. Use the newer hortus that wrote it."
            )
        told = content.pop("crc32", None)
        if told != _checksum(content):
            raise CorruptCheckpointError(f"{path} was changed after it was written.")
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{key: value for key, value in content.items() if key in known})


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
