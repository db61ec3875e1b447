"""Mixup (Zhang et al. 2017) and CutMix (Yun et al. 2019): pairs of a batch, with their labels."""

import tensorflow as tf

from hortus.vision.dataloaders.randomness import Rng, Seed


class MixupAndCutmix:
    """Mixes each image of a batch with the one at the mirrored place.

    Args:
      num_classes: length of the soft labels.
      mixup_alpha: both parameters of mixup's Beta distribution; 0 turns mixup off.
      cutmix_alpha: both parameters of CutMix's Beta distribution; 0 turns CutMix off.
      prob: chance that a batch is mixed at all, 0 to 1.
      switch_prob: chance of CutMix where both are on, 0 to 1; mixup otherwise.
      label_smoothing: share of the label spread over all classes, 0 to 1.
    """

    def __init__(
        self,
        num_classes: int,
        mixup_alpha: float = 0.8,
        cutmix_alpha: float = 1.0,
        prob: float = 1.0,
        switch_prob: float = 0.5,
        label_smoothing: float = 0.1,
    ):
        if mixup_alpha <= 0 and cutmix_alpha <= 0:
            raise ValueError("mixup_alpha and cutmix_alpha are both 0: there is nothing to mix")
        self.num_classes = num_classes
        self.mixup_alpha = mixup_alpha
        self.cutmix_alpha = cutmix_alpha
        self.prob = prob
        self.switch_prob = switch_prob
        self.label_smoothing = label_smoothing

    @tf.autograph.experimental.do_not_convert
    def distort(
        self, images: tf.Tensor, labels: tf.Tensor, seed: Seed = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mixed images and soft labels [batch, num_classes], float32.

        Args:
          images: [batch, height, width, channels], or clips [batch, frames, height, ...].
          labels: classes [batch], or soft labels [batch, num_classes].
          seed: two integers that determine the result; None draws new ones.
        """
        rng = Rng(seed)
        labels = self.smooth_labels(labels)
        if self.mixup_alpha <= 0:
            use_cutmix: tf.Tensor | bool = True
        elif self.cutmix_alpha <= 0:
            use_cutmix = False
        else:
            use_cutmix = rng.chance(self.switch_prob)

        def mixed() -> tuple[tf.Tensor, tf.Tensor]:
            if isinstance(use_cutmix, bool):
                mix = self.cutmix if use_cutmix else self.mixup
                return mix(images, labels, rng)
            return tf.cond(
                use_cutmix,
                lambda: self.cutmix(images, labels, rng),
                lambda: self.mixup(images, labels, rng),
            )

        mix, soft = tf.cond(rng.chance(self.prob), mixed, lambda: (images, labels))
        return tf.ensure_shape(mix, images.shape), tf.ensure_shape(soft, labels.shape)

    def smooth_labels(self, labels: tf.Tensor) -> tf.Tensor:
        """One-hot labels with the smoothing's share spread over all classes."""
        if labels.shape.rank == 1:
            labels = tf.one_hot(labels, self.num_classes)
        share = self.label_smoothing
        return tf.cast(labels, tf.float32) * (1.0 - share) + share / self.num_classes

    def mixup(self, images: tf.Tensor, labels: tf.Tensor, rng: Rng) -> tuple[tf.Tensor, tf.Tensor]:
        """Weighted sums of two images and of their soft labels."""
        weight = _beta(self.mixup_alpha, tf.shape(images)[0], rng)
        share = tf.cast(_like_images(weight, images), images.dtype)
        mixed = share * images + (1 - share) * tf.reverse(images, axis=[0])
        return mixed, mix_labels(labels, weight)

    def cutmix(self, images: tf.Tensor, labels: tf.Tensor, rng: Rng) -> tuple[tf.Tensor, tf.Tensor]:
        """A rectangle of one image in the other; labels by the areas."""
        count, size = tf.shape(images)[0], tf.shape(images)[-3:-1]
        exact = tf.cast(size, tf.float32)
        side = tf.sqrt(1.0 - _beta(self.cutmix_alpha, count, rng))[:, tf.newaxis] * exact
        center = tf.random.stateless_uniform([count, 2], rng.seed()) * exact
        begin = tf.cast(tf.round(tf.clip_by_value(center - side / 2, 0.0, exact)), tf.int32)
        end = tf.cast(tf.round(tf.clip_by_value(center + side / 2, 0.0, exact)), tf.int32)
        rows = _between(tf.range(size[0]), begin[:, 0], end[:, 0])
        columns = _between(tf.range(size[1]), begin[:, 1], end[:, 1])
        inside = rows[:, :, tf.newaxis, tf.newaxis] & columns[:, tf.newaxis, :, tf.newaxis]
        for _ in range(images.shape.rank - 4):
            inside = inside[:, tf.newaxis]
        mixed = tf.where(inside, tf.reverse(images, axis=[0]), images)
        area = tf.cast(tf.reduce_prod(end - begin, axis=-1), tf.float32)
        return mixed, mix_labels(labels, 1.0 - area / tf.reduce_prod(exact))


def mix_labels(labels: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Sums of soft labels [batch, classes] and their partners', weights [batch] for the former."""
    weight = tf.cast(weight, labels.dtype)[:, tf.newaxis]
    return weight * labels + (1.0 - weight) * tf.reverse(labels, axis=[0])


def _beta(alpha: float, count: tf.Tensor, rng: Rng) -> tf.Tensor:
    """Draws [count] of Beta(alpha, alpha)."""
    draws = tf.random.stateless_gamma(tf.stack([2, count]), rng.seed(), alpha)
    return draws[0] / tf.maximum(draws[0] + draws[1], 1e-30)


def _like_images(values: tf.Tensor, images: tf.Tensor) -> tf.Tensor:
    return tf.reshape(values, tf.concat([[-1], tf.ones([images.shape.rank - 1], tf.int32)], 0))


def _between(places: tf.Tensor, begin: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    return (places >= begin[:, tf.newaxis]) & (places < end[:, tf.newaxis])
