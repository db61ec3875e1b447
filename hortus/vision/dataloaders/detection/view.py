"""Which part of the stored image an augmented one shows, and which way round."""

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class View:
    """A part of the stored image, perhaps mirrored: what masks need to follow the image.

    A place in the view, as shares (y, x) of its size, is `begin + extent * place` in the stored
    image.
    """

    size: tf.Tensor
    """Height and width of the stored image, float32 [2]."""
    begin: tf.Tensor
    """The view's first corner, (y, x) in pixels of the stored image, float32 [2]."""
    extent: tf.Tensor
    """Height and width of the view, in the same pixels, float32 [2]; below 0 where mirrored."""

    @classmethod
    def whole(cls, size: tf.Tensor) -> "View":
        """All of an image of this height and width."""
        size = tf.cast(size, tf.float32)
        return cls(size, tf.zeros([2]), size)

    def flipped(self, axis: int, condition: tf.Tensor) -> "View":
        """The view mirrored along y, 0, or x, 1, where the condition holds."""
        is_mirrored = tf.one_hot(axis, 2) * tf.cast(condition, tf.float32)
        begin = self.begin + is_mirrored * self.extent
        return View(self.size, begin, self.extent * (1.0 - 2.0 * is_mirrored))

    def cropped(self, window: tf.Tensor) -> "View":
        """The part of the view that a window [4], ymin, xmin, ymax, xmax in shares, shows."""
        begin = self.begin + self.extent * window[:2]
        return View(self.size, begin, self.extent * (window[2:] - window[:2]))

    def places(self, along: tf.Tensor, info: tf.Tensor, axis: int) -> tf.Tensor:
        """Where pixels of the resized view lie in the stored image.

        Args:
          along: places along y, 0, or x, 1, in pixels of the resized and cropped view.
          info: what resizing did to the view, see `preprocess.resize`.
          axis: 0 or 1.

        Returns:
          Places in pixels of the stored image, float32.
        """
        shares = (along + info[3, axis]) / (info[2, axis] * info[0, axis])
        return self.begin[axis] + self.extent[axis] * shares
