"""Batches of ordinary examples and of such whose labels a model has made."""

import dataclasses
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from hortus.core import config_definitions as cfg
from hortus.engine.tensorflow import startable
from hortus.vision.configs import common
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader


class CombinationDatasetInputReader:
    """Reads two data sets side by side; every batch has its share of both, evenly spread.

    Of a batch of n examples, n * r / (1 + r) are pseudo-labelled, to the next whole number, where r
    is `pseudo_params.data_ratio`. It can be started anywhere, like what an `InputReader` reads.

    Args:
      params: the ordinary data; its `global_batch_size` counts all examples of a batch.
      pseudo_params: the pseudo-labelled data and its ratio.
      decoder_fn: of ordinary records, as for `InputReader`.
      parser_fn: of ordinary examples.
      pseudo_decoder_fn: of pseudo-labelled records; None for `decoder_fn`.
      pseudo_parser_fn: of pseudo-labelled examples, with the same structure, types and shapes; None
        for `parser_fn`.
    """

    def __init__(
        self,
        params: cfg.DataConfig,
        pseudo_params: common.PseudoLabelDataConfig,
        decoder_fn: Optional[Callable[[tf.Tensor], Any]] = None,
        parser_fn: Optional[Callable[..., Any]] = None,
        pseudo_decoder_fn: Optional[Callable[[tf.Tensor], Any]] = None,
        pseudo_parser_fn: Optional[Callable[..., Any]] = None,
    ):
        if not params.is_training or not pseudo_params.is_training:
            raise DataError("pseudo-labelled data is for training: is_training has to be true")
        self.params, self.pseudo_params = params, pseudo_params
        self._decoder_fn, self._parser_fn = decoder_fn, parser_fn
        self._pseudo_decoder_fn = pseudo_decoder_fn or decoder_fn
        self._pseudo_parser_fn = pseudo_parser_fn or parser_fn

    def read(self, input_context: Optional[Any] = None) -> tf.data.Dataset:
        """The dataset of a host's batches; see `InputReader.read`."""
        # Each replica gets the same mixture, so that both parts are multiples of their number.
        unit = getattr(input_context, "num_replicas_in_sync", 1) if input_context else 1
        total, ratio = self.params.global_batch_size, self.pseudo_params.data_ratio
        pseudo = round(total * ratio / (1 + ratio) / unit) * unit
        if not 0 < pseudo < total:
            raise DataError(
                f"a batch of {total} examples cannot be shared by ordinary and pseudo-labelled "
                f"ones at 1 to {ratio}: choose a larger global_batch_size or another data_ratio"
            )
        parts = [
            InputReader(
                dataclasses.replace(params, global_batch_size=size, drop_remainder=True),
                decoder_fn=decode,
                parser_fn=parse,
            ).read(input_context)
            for params, size, decode, parse in (
                (self.params, total - pseudo, self._decoder_fn, self._parser_fn),
                (self.pseudo_params, pseudo, self._pseudo_decoder_fn, self._pseudo_parser_fn),
            )
        ]
        ordinary, made = (tf.nest.flatten(part.element_spec)[0].shape[0] for part in parts)
        order = _spread(ordinary, made)
        return startable.zip_startable(parts).map(
            lambda first, second: tf.nest.map_structure(
                lambda a, b: tf.gather(tf.concat([a, b], axis=0), order), first, second
            ),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )


def _spread(first: int, second: int) -> np.ndarray:
    """An order of `first` + `second` places in which every part has about its share of both."""
    places = [(np.arange(count) + 0.5) / count for count in (first, second)]
    return np.argsort(np.concatenate(places), kind="stable")
