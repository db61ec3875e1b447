"""Random numbers that depend on a seed and on nothing else.

Each example has its own seed, made from the seed of the run and the example's place in the stream.
So it does not matter which thread prepares an example, and a run that starts again in the middle
sees what it would have seen.
"""

from collections.abc import Sequence
from typing import TypeAlias

import tensorflow as tf

Seed: TypeAlias = tf.Tensor | Sequence[int] | None
"""Two integers that determine everything random in a function; None draws new ones."""
Number: TypeAlias = tf.Tensor | float


def make_seed(seed: Seed = None) -> tf.Tensor:
    """Returns `seed` as int64 [2]; None draws one from TensorFlow's generator."""
    if seed is None:
        return tf.random.uniform([2], tf.int64.min, tf.int64.max, tf.int64)
    return tf.cast(tf.convert_to_tensor(seed), tf.int64)


class Rng:
    """Hands out random numbers, all determined by one seed.

    Every call gives new numbers. The calls are told apart when the graph is traced, so a call in a
    loop of TensorFlow's gives the same numbers in each turn: draw a vector before the loop instead.
    """

    def __init__(self, seed: Seed = None):
        # Not yet `make_seed`: without a seed it draws one, and many have nothing to draw at all.
        self._given = seed
        self._seed: tf.Tensor | None = None
        self._draws = 0

    def seed(self) -> tf.Tensor:
        """A new seed, [2] of int64, for a function that draws numbers of its own."""
        if self._seed is None:
            self._seed = make_seed(self._given)
        self._draws += 1
        # A stream of its own for each draw: nested generators cannot meet, as each level is hashed.
        return tf.random.fold_in(self._seed, tf.constant(self._draws, tf.int64))

    def uniform(
        self, low: Number = 0.0, high: Number = 1.0, shape: Sequence[int] = ()
    ) -> tf.Tensor:
        """Numbers in [low, high), float32."""
        draw = tf.random.stateless_uniform(shape, self.seed())
        return low + draw * (high - low)

    def integer(self, low: tf.Tensor | int, high: tf.Tensor | int) -> tf.Tensor:
        """One of low, ..., high - 1, int32."""
        return tf.random.stateless_uniform([], self.seed(), low, high, tf.int32)

    def normal(self, stddev: Number = 1.0, shape: Sequence[int] = ()) -> tf.Tensor:
        """Normally distributed numbers around 0, float32."""
        return tf.random.stateless_normal(shape, self.seed(), stddev=stddev)

    def chance(self, probability: Number) -> tf.Tensor:
        """True with this probability, 0 to 1."""
        return self.uniform() < probability

    def sign(self) -> tf.Tensor:
        """-1.0 or 1.0."""
        return tf.where(self.chance(0.5), -1.0, 1.0)
