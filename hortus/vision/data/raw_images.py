"""The images of a classification data set as they are stored, with whatever is wrong with them."""

import collections
import dataclasses
import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent import futures
from typing import Any

import numpy as np
import tensorflow as tf

from hortus.vision.configs import image_classification as configs
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.attempts import reason_of
from hortus.vision.dataloaders.classification import reader as classification_input
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.sources.base import Shard, Source

_BROKEN = (tf.errors.OpError, ValueError, TypeError, OSError)
_READ_AHEAD = 64


@dataclasses.dataclass(frozen=True)
class RawImage:
    """An encoded image with its classes; what cannot be read is empty."""

    where: str
    """File, or file and record."""
    encoded: bytes = b""
    classes: tuple[int, ...] = ()
    pixels: np.ndarray | None = None
    """uint8 [height, width, 3]."""
    problem: str = ""
    """Why it cannot be used; empty when it can."""


class RawImages:
    """All images of a data config, once and in order, decoded by several threads.

    Args:
        params: which data.
        task_config: whose data it is: its training data says which class has which number.

    Raises:
        DataError: the files are not there, or are not what the config says.
    """

    def __init__(self, params: configs.DataConfig, task_config: Any):
        names = classification_input.names_of_training(params, task_config.train_data)
        self._params = dataclasses.replace(params, skip_bad_records=False)
        self._reader = classification_input.build_reader(self._params, (1, 1), 0, names)
        self.info: DatasetInfo = self._reader.info

    def __iter__(self) -> Iterator[RawImage]:
        """Yields the images.

        Raises:
            DataError: a file of records is damaged, and the rest of it cannot be read.
        """
        for source in self._reader.sources.values():
            yield from _decoded(self._reader, source, self._params)


def is_set(params: Any) -> bool:
    """Whether a data config names any data."""
    return params is not None and bool(params.input_path or params.tfds_name)


def _decoded(reader: InputReader, source: Source, params: configs.DataConfig) -> Iterator[RawImage]:
    references = iter(source.one_pass(Shard(), None))
    waiting: collections.deque[futures.Future[RawImage]] = collections.deque()
    damage = None
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while True:
            try:
                reference = next(references)
            except StopIteration:
                break
            except tf.errors.OpError as error:
                damage = DataError(reader.explain(error) or reason_of(error))
                break
            waiting.append(pool.submit(_read, source, reference, params))
            if len(waiting) > _READ_AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    if damage is not None:
        raise damage


def _read(source: Source, reference: Any, params: configs.DataConfig) -> RawImage:
    as_numpy = tf.nest.map_structure(lambda value: value.numpy(), reference)
    image = RawImage(source.where(as_numpy))
    try:
        example = source.load(reference)
        classes = np.ravel(example[params.label_field_key].numpy()).tolist()
        encoded = example[params.image_field_key]
        image = dataclasses.replace(image, encoded=encoded.numpy(), classes=tuple(classes))
        pixels = preprocess.decode_image(encoded).numpy()
    except _BROKEN as error:
        reason = reason_of(error)
        return dataclasses.replace(image, problem=reason + source.hint(as_numpy, reason))
    return dataclasses.replace(image, pixels=pixels)


def class_text(classes: Sequence[int], names: Sequence[str]) -> str:
    """The names of classes; their numbers where they have no names."""
    known = range(len(names))
    return ", ".join(names[number] if number in known else str(number) for number in classes)


def pixel_digest(pixels: np.ndarray) -> bytes:
    """The same for the same pixels, whatever the file's format and metadata."""
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.digest()
