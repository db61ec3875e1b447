"""Seeds for all purposes of an input pipeline."""

import dataclasses
import hashlib

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Seeds:
    """Seeds for all purposes, from that of the run and the number of the host."""

    seed: int
    host: int = 0

    def number(self, *purpose: str) -> int:
        """A number below 2**63."""
        text = repr((self.seed, self.host, *purpose))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

    def pair(self, *purpose: str) -> tf.Tensor:
        """Two numbers, int64 [2]; the second can be counted up without end."""
        return tf.constant([self.number(*purpose, "1"), self.number(*purpose, "2") >> 1], tf.int64)
