"""The face of parsers: dicts of tensors -> what a batch is made of."""

import abc
from collections.abc import Callable
from typing import Any

import tensorflow as tf


class Parser(abc.ABC):
    """Turns a decoded example into what a batch is made of, for training and for evaluation."""

    @abc.abstractmethod
    def _parse_train_data(self, decoded_tensors: dict[str, tf.Tensor], seed: tf.Tensor) -> Any:
        """An augmented example. All that is random must come from `seed`, int64 [2]."""

    @abc.abstractmethod
    def _parse_eval_data(self, decoded_tensors: dict[str, tf.Tensor]) -> Any:
        """An example as it is, resized."""

    def parse_fn(self, is_training: bool) -> Callable[..., Any]:
        """The function to hand to `InputReader` as `parser_fn`."""
        return self._parse_train_data if is_training else self._parse_eval_data
