"""RandAugment (Cubuk et al. 2019): a few random operations, all of one strength."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hortus.vision.dataloaders.augment import operations
from hortus.vision.dataloaders.augment.base import ImageAndBoxes, ImageAugmentation, Number
from hortus.vision.dataloaders.randomness import Rng

OPERATIONS = (
    "AutoContrast",
    "Equalize",
    "Invert",
    "Rotate",
    "Posterize",
    "Solarize",
    "Color",
    "Contrast",
    "Brightness",
    "Sharpness",
    "ShearX",
    "ShearY",
    "TranslateX",
    "TranslateY",
    "Cutout",
    "SolarizeAdd",
)


class RandAugment(ImageAugmentation):
    """Applies `num_layers` operations, drawn anew for each image.

    Args:
      num_layers: operations per image, one after another.
      magnitude: strength of all of them; 0 is weakest, 10 the usual maximum, more is allowed.
      cutout_const: half the side of the cutout square, in pixels, at magnitude 10.
      translate_const: longest shift, in pixels, at magnitude 10.
      magnitude_std: standard deviation of the noise on the magnitude, new for each operation; the
        sum stays between 0 and 10 (or `magnitude`, where that is more).
      prob_to_apply: chance of each operation, 0 to 1; None always applies it.
      exclude_ops: operations never drawn, by their names in `OPERATIONS`.
      operation_names: the operations to draw from.
    """

    def __init__(
        self,
        num_layers: int = 2,
        magnitude: float = 10.0,
        cutout_const: float = 40.0,
        translate_const: float = 100.0,
        magnitude_std: float = 0.0,
        prob_to_apply: float | None = None,
        exclude_ops: Sequence[str] | None = None,
        operation_names: Sequence[str] = OPERATIONS,
    ):
        super().__init__(cutout_const, translate_const)
        exclude_ops = tuple(exclude_ops or ())
        operations.check_names(exclude_ops, operation_names, "operation in exclude_ops")
        self.num_layers = num_layers
        self.magnitude = float(magnitude)
        self.magnitude_std = float(magnitude_std)
        self.prob_to_apply = prob_to_apply
        self.operation_names = tuple(name for name in operation_names if name not in exclude_ops)
        if not self.operation_names:
            raise ValueError(f"exclude_ops leaves no operation: {', '.join(exclude_ops)}")

    @classmethod
    def build_for_detection(
        cls, *, exclude_ops: Sequence[str] | None = None, **settings: Any
    ) -> "RandAugment":
        """A RandAugment for `distort_with_boxes`: operations that move pixels move the boxes too.

        `exclude_ops` may name them with `_BBox` or without.
        """
        boxed = {name.removesuffix("_BBox"): name for name in operations.BOX_OPERATIONS}
        names = tuple(boxed.get(name, name) for name in OPERATIONS)
        excluded = [name if name in names else boxed.get(name, name) for name in exclude_ops or ()]
        return cls(exclude_ops=excluded, operation_names=names, **settings)

    def _apply(self, image: tf.Tensor, bboxes: tf.Tensor | None, rng: Rng) -> ImageAndBoxes:
        step = self._step(self.operation_names)
        for _ in range(self.num_layers):
            index = rng.integer(0, len(self.operation_names))
            if self.prob_to_apply is not None:
                is_applied = rng.chance(self.prob_to_apply)
                index = tf.where(is_applied, index, len(self.operation_names))
            image, bboxes = step(index, self._level(rng), 1.0, image, bboxes, rng.seed())
        return image, bboxes

    def _level(self, rng: Rng) -> Number:
        if self.magnitude_std == 0.0:
            return self.magnitude
        highest = max(self.magnitude, operations.MAX_LEVEL)
        return tf.clip_by_value(self.magnitude + rng.normal(self.magnitude_std), 0.0, highest)
