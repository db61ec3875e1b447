"""Random erasing (Zhong et al. 2017): noise in random rectangles."""

import math

import tensorflow as tf

from hortus.vision.dataloaders.randomness import Rng, Seed


class RandomErasing:
    """Fills random rectangles of an image with noise.

    Args:
      probability: chance that an image is changed, 0 to 1.
      min_area: smallest rectangle, as a share of the image.
      max_area: largest rectangle, as a share of the image.
      min_aspect: smallest height / width.
      max_aspect: largest height / width; None for the inverse of `min_aspect`.
      min_count: fewest rectangles in a changed image.
      max_count: most rectangles in a changed image. The areas are those of all of them together.
      trials: how often to draw a rectangle that fits; if none does, it is left out.
    """

    def __init__(
        self,
        probability: float = 0.25,
        min_area: float = 0.02,
        max_area: float = 1 / 3,
        min_aspect: float = 0.3,
        max_aspect: float | None = None,
        min_count: int = 1,
        max_count: int = 1,
        trials: int = 10,
    ):
        self.probability = probability
        self.min_area = min_area
        self.max_area = max_area
        self.min_aspect = min_aspect
        self.max_aspect = max_aspect or 1.0 / min_aspect
        self.min_count = min_count
        self.max_count = max_count
        self.trials = trials

    @tf.autograph.experimental.do_not_convert
    def distort(self, image: tf.Tensor, seed: Seed = None) -> tf.Tensor:
        """Returns the image with rectangles of standard normal noise.

        Args:
          image: normalised float image [height, width, channels].
          seed: two integers that determine the result; None draws new ones.
        """
        rng = Rng(seed)
        return tf.cond(rng.chance(self.probability), lambda: self._erase(image, rng), lambda: image)

    def _erase(self, image: tf.Tensor, rng: Rng) -> tf.Tensor:
        if self.min_count == self.max_count:
            count: tf.Tensor | int = self.max_count
        else:
            count = rng.integer(self.min_count, self.max_count + 1)
        shape = tf.shape(image)
        erased = tf.zeros(shape[:2], tf.bool)
        for i in range(self.max_count):
            erased |= self._rectangle(shape[:2], count, rng) & (i < count)
        noise = tf.cast(rng.normal(shape=shape), image.dtype)
        return tf.where(erased[..., tf.newaxis], noise, image)

    def _rectangle(self, size: tf.Tensor, count: tf.Tensor | int, rng: Rng) -> tf.Tensor:
        """Which pixels [height, width] the first rectangle that fits has; none if none fits."""
        height, width = size[0], size[1]
        draws = [self.trials]
        area = rng.uniform(self.min_area, self.max_area, draws) / tf.cast(count, tf.float32)
        area *= tf.cast(height * width, tf.float32)
        aspect = tf.exp(rng.uniform(math.log(self.min_aspect), math.log(self.max_aspect), draws))
        heights = tf.cast(tf.round(tf.sqrt(area * aspect)), tf.int32)
        widths = tf.cast(tf.round(tf.sqrt(area / aspect)), tf.int32)
        fits = (heights < height) & (widths < width)
        first = tf.argmax(fits)
        extent = tf.stack([heights[first], widths[first]])
        room = tf.cast(size - extent + 1, tf.float32)
        begin = tf.cast(rng.uniform(shape=[2]) * room, tf.int32)
        rows, columns = tf.range(height), tf.range(width)
        rows = (rows >= begin[0]) & (rows < begin[0] + extent[0])
        columns = (columns >= begin[1]) & (columns < begin[1] + extent[1])
        return rows[:, tf.newaxis] & columns[tf.newaxis, :] & fits[first]
