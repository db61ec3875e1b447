"""AutoAugment (Cubuk et al. 2018): a random line of a learned policy per image."""

import tensorflow as tf

from hortus.vision.dataloaders.augment import operations
from hortus.vision.dataloaders.augment.base import ImageAndBoxes, ImageAugmentation
from hortus.vision.dataloaders.augment.policies import POLICIES, Policy
from hortus.vision.dataloaders.randomness import Rng


class AutoAugment(ImageAugmentation):
    """Draws one sub-policy per image and applies its operations, each with its probability.

    Args:
      augmentation_name: a policy of `policies.POLICIES`.
      policies: a policy of your own, of the same form; `augmentation_name` does not count then.
      cutout_const: half the side of the cutout square, in pixels, at level 10.
      translate_const: longest shift, in pixels, at level 10.
    """

    def __init__(
        self,
        augmentation_name: str = "v0",
        policies: Policy | None = None,
        cutout_const: float = 100.0,
        translate_const: float = 250.0,
    ):
        super().__init__(cutout_const, translate_const)
        if policies is None:
            operations.check_names([augmentation_name], POLICIES, "AutoAugment policy")
            policies = POLICIES[augmentation_name]
        self.augmentation_name = augmentation_name
        self.policies = policies
        self.operation_names = tuple(sorted({name for line in policies for name, _, _ in line}))
        known = (*operations.IMAGE_OPERATIONS, *operations.BOX_OPERATIONS)
        operations.check_names(self.operation_names, known, "operation")

    def _apply(self, image: tf.Tensor, bboxes: tf.Tensor | None, rng: Rng) -> ImageAndBoxes:
        names = self.operation_names
        if bboxes is None and (boxed := [n for n in names if n in operations.BOX_OPERATIONS]):
            raise ValueError(
                f"the policy {self.augmentation_name} moves boxes ({', '.join(boxed)}), and here "
                "are none; use it for detection only"
            )
        # The policy as a table [line, step] of operation, probability and level.
        num_steps = max(len(line) for line in self.policies)
        nothing = [("", 1.0, 0.0)] * num_steps
        rows = [(*line, *nothing)[:num_steps] for line in self.policies]
        places = {name: place for place, name in enumerate(names)}
        indices = tf.constant(
            [[places.get(name, len(names)) for name, _, _ in row] for row in rows]
        )
        chances = tf.constant([[probability for _, probability, _ in row] for row in rows])
        levels = tf.constant([[float(level) for _, _, level in row] for row in rows])
        always = tf.constant(
            [[name in operations.DECIDE_THEMSELVES for name, _, _ in row] for row in rows]
        )

        line = rng.integer(0, len(rows))
        chosen = always[line] | (rng.uniform(shape=[num_steps]) < chances[line])
        drawn = tf.where(chosen, indices[line], len(names))
        step = self._step(names)
        for i in range(num_steps):
            image, bboxes = step(
                drawn[i], levels[line, i], chances[line, i], image, bboxes, rng.seed()
            )
        return image, bboxes
