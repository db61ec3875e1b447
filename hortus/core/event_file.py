"""TensorBoard's event files, written and cut without TensorFlow.

An event file is a row of records, each with its length, a checksum of the length, the bytes of an
`Event`, and a checksum of those.
"""

import io
import os
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any, BinaryIO, Optional

import numpy as np
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from PIL import Image
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from hortus.core import atomic_file
from hortus.core.checkpoints.atomic_folder import flush_folder
from hortus.core.checkpoints.tf2.crc32c import crc32c

_HEADER, _FOOTER = 12, 4
_MASK = 0xA282EAD8
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


class EventFile:
    """A new event file in `folder`, made with its first summary.

    `flush` puts it on disk: from then on the summaries are there, whatever happens to the process.
    """

    def __init__(self, folder: str):
        self.folder = folder
        self._file: Optional[BinaryIO] = None

    def write(self, summary: Summary, step: int) -> None:
        self._open().write(_record(Event(wall_time=time.time(), step=step, summary=summary)))

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self.flush()
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO:
        if self._file is None:
            os.makedirs(self.folder, exist_ok=True)
            # TensorBoard reads the files of a folder in the order of their names: time comes first.
            seconds, rest = divmod(time.time_ns(), 10**9)
            name = f"{seconds:010d}.{rest:09d}.{socket.gethostname()}.{os.getpid()}"
            path = os.path.join(self.folder, f"events.out.tfevents.{name}")
            self._file = open(path, "xb")  # noqa: SIM115, `close` closes it
            self._file.write(_record(Event(wall_time=time.time(), file_version="brain.Event:2")))
            flush_folder(self.folder)
        return self._file


def scalar(name: str, value: float) -> Summary:
    """The summary of a number; NaN and infinities stay what they are."""
    return Summary(value=[Summary.Value(tag=name, simple_value=value)])


def image(name: str, images: Any) -> Summary:
    """The summary of pictures, as PNG.

    Args:
        name: tag of a single picture; several get `name/0`, `name/1`, ...
        images: [n, height, width, channels] or [height, width, channels]; 1, 3 or 4 channels;
            integers from 0 to 255, floats from 0 to 1, or booleans.
    """
    pixels = _pixels(name, images)
    tags = [name] if len(pixels) == 1 else [f"{name}/{i}" for i in range(len(pixels))]
    height, width, channels = pixels.shape[1:]
    summary = Summary()
    for tag, picture in zip(tags, pixels, strict=True):
        png = io.BytesIO()
        Image.fromarray(picture[..., 0] if channels == 1 else picture).save(png, "PNG")
        value = summary.value.add(tag=tag)
        value.image.height, value.image.width, value.image.colorspace = height, width, channels
        value.image.encoded_image_string = png.getvalue()
    return summary


def sync(path: str) -> None:
    """Waits until what was written to a file is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def paths(folder: str) -> Iterator[str]:
    """All event files in a folder and those below."""
    for parent, _, names in os.walk(folder):
        yield from (os.path.join(parent, name) for name in sorted(names) if ".tfevents." in name)


def images(folder: str) -> Iterator[tuple[str, int, bytes]]:
    """Tag, step and encoded picture of all image summaries in a folder and those below."""
    for path in paths(folder):
        with open(path, "rb") as file:
            content = file.read()
        for _, record in _records(content):
            event = Event.FromString(record[_HEADER:-_FOOTER])
            for value in event.summary.value:
                if value.HasField("image"):
                    yield value.tag, event.step, value.image.encoded_image_string
                elif value.metadata.plugin_data.plugin_name == "images":
                    # As TensorFlow's own writer has it: width, height, then the pictures.
                    for encoded in value.tensor.string_val[2:]:
                        yield value.tag, event.step, encoded


def rewind(folder: str, step: int) -> None:
    """Drops all events past `step` from the event files in a folder and those below.

    Each file is whole at every moment. Nobody may be writing to it.
    """
    for path in paths(folder):
        with open(path, "rb") as file:
            content = file.read()
        records = list(_records(content))
        kept = [record for at, record in records if at <= step]
        if len(kept) < len(records):
            atomic_file.replace(path, b"".join(kept))


def _record(event: Event) -> bytes:
    data = event.SerializeToString()
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    crc = crc32c(np.frombuffer(data, np.uint8))
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)


def _records(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Step and bytes of every complete record."""
    start = 0
    while start + _HEADER + _FOOTER <= len(content):
        (length,) = struct.unpack_from("<Q", content, start)
        data, end = start + _HEADER, start + _HEADER + length + _FOOTER
        if end > len(content):
            return  # its writer was killed in the middle of it
        try:
            step = Event.FromString(content[data : data + length]).step
        except DecodeError:
            return  # damaged: from here on nobody knows where a record begins
        yield step, content[start:end]
        start = end


def _pixels(name: str, images: Any) -> np.ndarray:
    """The pictures as uint8, [n, height, width, channels]."""
    array = np.asarray(images.numpy() if hasattr(images, "numpy") else images)
    if array.ndim == 3:
        array = array[np.newaxis]
    if array.ndim != 4 or array.shape[-1] not in _MODES:
        raise ValueError(
            f"{name!r} is no batch of pictures: expected shape [n, height, width, channels] with "
            f"1, 3 or 4 channels, got {list(array.shape)}"
        )
    if array.dtype.kind == "b":
        return array.astype(np.uint8) * 255
    if array.dtype.kind in "iu":
        return np.clip(array, 0, 255).astype(np.uint8)
    unit = np.nan_to_num(np.clip(array.astype(np.float32), 0.0, 1.0))
    return (unit * 255.0 + 0.5).astype(np.uint8)
