"""The operations that AutoAugment and RandAugment choose from, by name.

An operation is a function of the image and its `Strength`; one that moves objects is a function of
the image, the boxes and its `Strength`.
"""

import dataclasses
import difflib
from collections.abc import Callable, Iterable

import tensorflow as tf

from hortus.vision.dataloaders.augment import box_ops, color_ops, geometry_ops
from hortus.vision.dataloaders.randomness import Rng

MAX_LEVEL = 10.0


@dataclasses.dataclass(frozen=True)
class Strength:
    """How strongly an operation is applied, and its random numbers."""

    level: float | tf.Tensor
    """0 is weakest, 10 the usual maximum."""
    rng: Rng
    cutout_const: float
    """Half the side of the cutout square, in pixels, at level 10."""
    translate_const: float
    """Longest shift, in pixels, at level 10."""
    prob: float | tf.Tensor = 1.0
    """Chance of the operation, for those that decide box by box."""

    def scaled(self, maximum: float) -> float | tf.Tensor:
        """`maximum` at level 10, 0 at level 0."""
        return self.level / MAX_LEVEL * maximum

    def whole(self, maximum: float) -> int | tf.Tensor:
        """`scaled` without its fraction."""
        value = self.scaled(maximum)
        # In float32, 0.7 * 110 may be a little less than 77.
        return tf.cast(value + 1e-4, tf.int32) if tf.is_tensor(value) else int(value)

    def signed(self, maximum: float) -> tf.Tensor:
        """`scaled` with a random sign."""
        return self.scaled(maximum) * self.rng.sign()

    @property
    def factor(self) -> float | tf.Tensor:
        """Factor of a blend: 0.1 to 1.9, the image itself in the middle."""
        return self.scaled(1.8) + 0.1


def _cutout(image: tf.Tensor, strength: Strength) -> tf.Tensor:
    size = tf.cast(tf.shape(image)[:2], tf.float32)
    center = tf.cast(strength.rng.uniform(shape=[2]) * size, tf.int32)
    return geometry_ops.cutout(image, strength.whole(strength.cutout_const), center)


def _blur(image: tf.Tensor, strength: Strength) -> tf.Tensor:
    low, high = strength.scaled(1.0), strength.scaled(strength.translate_const)
    return color_ops.gaussian_blur(image, tf.maximum(strength.rng.uniform(low, high), 1e-3))


ImageOperation = Callable[[tf.Tensor, Strength], tf.Tensor]
BoxOperation = Callable[[tf.Tensor, tf.Tensor, Strength], tuple[tf.Tensor, tf.Tensor]]

IMAGE_OPERATIONS: dict[str, ImageOperation] = {
    "AutoContrast": lambda image, _: color_ops.autocontrast(image),
    "Equalize": lambda image, _: color_ops.equalize(image),
    "Invert": lambda image, _: color_ops.invert(image),
    "Rotate": lambda image, s: geometry_ops.rotate(image, s.signed(30.0)),
    "Posterize": lambda image, s: color_ops.posterize(image, s.whole(4.0)),
    "Solarize": lambda image, s: color_ops.solarize(image, s.whole(256.0)),
    "SolarizeAdd": lambda image, s: color_ops.solarize_add(image, s.whole(110.0)),
    "Color": lambda image, s: color_ops.color(image, s.factor),
    "Contrast": lambda image, s: color_ops.contrast(image, s.factor),
    "Brightness": lambda image, s: color_ops.brightness(image, s.factor),
    "Sharpness": lambda image, s: color_ops.sharpness(image, s.factor),
    "ShearX": lambda image, s: geometry_ops.shear_x(image, s.signed(0.3)),
    "ShearY": lambda image, s: geometry_ops.shear_y(image, s.signed(0.3)),
    "TranslateX": lambda image, s: geometry_ops.translate_x(image, s.signed(s.translate_const)),
    "TranslateY": lambda image, s: geometry_ops.translate_y(image, s.signed(s.translate_const)),
    "Cutout": _cutout,
    "Grayscale": lambda image, _: color_ops.grayscale(image),
    # The name is that of the published policy; it smooths.
    "Gaussian_Noise": _blur,
}

BOX_OPERATIONS: dict[str, BoxOperation] = {
    "Rotate_BBox": lambda image, boxes, s: box_ops.rotate_with_bboxes(image, boxes, s.signed(30.0)),
    "ShearX_BBox": lambda image, boxes, s: box_ops.shear_x_with_bboxes(image, boxes, s.signed(0.3)),
    "ShearY_BBox": lambda image, boxes, s: box_ops.shear_y_with_bboxes(image, boxes, s.signed(0.3)),
    "TranslateX_BBox": lambda image, boxes, s: box_ops.translate_x_with_bboxes(
        image, boxes, s.signed(s.translate_const)
    ),
    "TranslateY_BBox": lambda image, boxes, s: box_ops.translate_y_with_bboxes(
        image, boxes, s.signed(s.translate_const)
    ),
    "TranslateY_Only_BBoxes": lambda image, boxes, s: (
        box_ops.translate_y_only_bboxes(image, boxes, s.signed(120.0), s.prob, s.rng),
        boxes,
    ),
}

_PLAIN = {name.removesuffix("_BBox") for name in BOX_OPERATIONS}
MOVING = frozenset({*BOX_OPERATIONS, *(name for name in IMAGE_OPERATIONS if name in _PLAIN)})
"""Operations after which a pixel shows another place than before."""

# They decide themselves, box by box, whether to do anything.
DECIDE_THEMSELVES = frozenset({"TranslateY_Only_BBoxes"})


def check_names(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raises a ValueError that shows near names, when a name is not known."""
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise ValueError(f"unknown {what} {name!r}; {hint}Known: {', '.join(sorted(known))}")


def apply(
    name: str, image: tf.Tensor, boxes: tf.Tensor | None, strength: Strength
) -> tuple[tf.Tensor, tf.Tensor | None]:
    """Applies an operation; boxes are None where there are none, and then stay None."""
    if name in BOX_OPERATIONS:
        if boxes is None:
            raise ValueError(
                f"the operation {name} moves boxes, and here are none; use it for detection only"
            )
        return BOX_OPERATIONS[name](image, boxes, strength)
    result = IMAGE_OPERATIONS[name](image, strength)
    result.set_shape(image.shape)
    return result, boxes
