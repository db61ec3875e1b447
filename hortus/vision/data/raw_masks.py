"""The images of a segmentation data set with their masks, with whatever is wrong with them."""

import dataclasses
import itertools
import os
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import numpy as np
import tensorflow as tf

from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.attempts import reason_of
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.segmentation import reader as segmentation_input
from hortus.vision.dataloaders.sources.base import Shard, Source

_BROKEN = (tf.errors.OpError, ValueError, TypeError, OSError)
_AT_ONCE = 64


@dataclasses.dataclass(frozen=True)
class RawMask:
    """An encoded image and the classes of its pixels; what cannot be read is empty."""

    where: str
    """Files, or file and record."""
    encoded: bytes = b""
    """The image as it is stored."""
    pixels: np.ndarray | None = None
    """The image, uint8 [height, width, channels]."""
    mask: np.ndarray | None = None
    """Class numbers, int32 [height, width]."""
    problem: str = ""
    """Why it cannot be used; empty when it can."""


class RawMasks:
    """All images of a data config with their masks, once and in order, read by several threads.

    Args:
        params: which data.
        task_config: whose data it is.

    Raises:
        DataError: the files are not there, or are not what the config says.
    """

    def __init__(self, params: configs.DataConfig, task_config: configs.SemanticSegmentationTask):
        self._params = dataclasses.replace(params, skip_bad_records=False)
        ignore_label = task_config.losses.ignore_label
        # No number of classes: what they are is looked at, not insisted on.
        self._reader = segmentation_input.build_reader(self._params, (1, 1), 0, ignore_label)
        self._parser = segmentation_input.Parser(None, 0, ignore_label, self._params)
        self.info: DatasetInfo = self._reader.info

    def __iter__(self) -> Iterator[RawMask]:
        """Yields the images.

        Raises:
            DataError: a file of records is damaged, and the rest of it cannot be read.
        """
        for source in self._reader.sources.values():
            references = iter(source.one_pass(Shard(), None))
            with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                while chunk := self._next(references):
                    yield from pool.map(lambda each, source=source: self._read(source, each), chunk)

    def _next(self, references: Iterator[Any]) -> list[Any]:
        try:
            return list(itertools.islice(references, _AT_ONCE))
        except tf.errors.OpError as error:
            raise DataError(self._reader.explain(error) or reason_of(error)) from None

    def _read(self, source: Source, reference: Any) -> RawMask:
        as_numpy = tf.nest.map_structure(lambda value: value.numpy(), reference)
        found = RawMask(source.where(as_numpy))
        feature = self._params.image_feature
        try:
            example = source.load(reference)
            encoded = example[feature.feature_name]
            found = dataclasses.replace(found, encoded=encoded.numpy())
            pixels = preprocess.decode_image(encoded, feature.num_channels).numpy()
            mask = self._parser.class_mask(example).numpy()[..., 0]
        except _BROKEN as error:
            reason = reason_of(error)
            return dataclasses.replace(found, problem=reason + source.hint(as_numpy, reason))
        found = dataclasses.replace(found, pixels=pixels, mask=mask)
        if pixels.shape[:2] == mask.shape:
            return found
        sizes = [" x ".join(map(str, each.shape[:2])) for each in (mask, pixels)]
        return dataclasses.replace(
            found, problem=f"the mask has {sizes[0]} pixels, the image {sizes[1]}"
        )
