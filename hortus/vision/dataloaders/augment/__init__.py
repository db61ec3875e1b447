"""Augmentation in tf.data: AutoAugment, RandAugment, erasing, mixing, crops around objects.

augmentation = RandAugment(num_layers=2, magnitude=9)
image = augmentation.distort(image, seed)
image, boxes = RandAugment.build_for_detection(magnitude=9).distort_with_boxes(image, boxes)
"""

from hortus.vision.dataloaders.augment.auto_augment import AutoAugment
from hortus.vision.dataloaders.augment.factory import (
    build_box_augmentation,
    build_image_augmentation,
    build_random_erasing,
    build_three_augment,
    register_augmentation,
)
from hortus.vision.dataloaders.augment.mixing import MixupAndCutmix
from hortus.vision.dataloaders.augment.rand_augment import RandAugment
from hortus.vision.dataloaders.augment.random_erasing import RandomErasing
from hortus.vision.dataloaders.augment.ssd_random_crop import SSDRandomCrop

__all__ = [
    "AutoAugment",
    "MixupAndCutmix",
    "RandAugment",
    "RandomErasing",
    "SSDRandomCrop",
    "build_box_augmentation",
    "build_image_augmentation",
    "build_random_erasing",
    "build_three_augment",
    "register_augmentation",
]
