"""The face of decoders: records -> dicts of tensors."""

import abc

import tensorflow as tf


class Decoder(abc.ABC):
    """Turns a serialised record into a dict of tensors, images still encoded or decoded."""

    @abc.abstractmethod
    def decode(self, serialized_example: tf.Tensor) -> dict[str, tf.Tensor]:
        """The fields of a record, a scalar string, by their keys."""
