"""From the settings of an experiment to the augmentation they describe."""

from collections.abc import Callable
from typing import Any

from hortus import registry
from hortus.vision.configs import common
from hortus.vision.dataloaders.augment.auto_augment import AutoAugment
from hortus.vision.dataloaders.augment.base import ImageAugmentation
from hortus.vision.dataloaders.augment.rand_augment import RandAugment
from hortus.vision.dataloaders.augment.random_erasing import RandomErasing
from hortus.vision.dataloaders.augment.ssd_random_crop import SSDRandomCrop

Builder = Callable[[Any, bool], Any]

_AUGMENTATIONS = registry.Registry("augmentation", "hortus.vision.dataloaders.augment")


def register_augmentation(key: str) -> Callable[[Builder], Builder]:
    """Decorates the function that builds an augmentation, and makes it that of type `key`.

        @augment.register_augmentation("rain")
        def build_rain(config, has_boxes):
            return Rain(config.drops)

    Its settings join by subclassing the `Augmentation` config with one more field, and the data
    config with an `aug_type` of the new class.

    The builder receives:
        config: the sub-config of the same name as `key`.
        has_boxes: whether images come with boxes.

    It returns an `ImageAugmentation`, or another object with its `distort(image, seed)`, and, for
    images with boxes, with its `distort_with_boxes(image, bboxes, seed)`.

    Args:
        key: the value of `aug_type.type` in configs.
    """
    return registry.register(_AUGMENTATIONS, key)


@register_augmentation("autoaug")
def _auto_augment(config: common.AutoAugment, has_boxes: bool) -> ImageAugmentation:
    return AutoAugment(**config.as_dict())


@register_augmentation("randaug")
def _rand_augment(config: common.RandAugment, has_boxes: bool) -> ImageAugmentation:
    build = RandAugment.build_for_detection if has_boxes else RandAugment
    return build(**config.as_dict())


@register_augmentation("ssd_random_crop")
def _ssd_random_crop(config: common.SSDRandomCrop, has_boxes: bool) -> SSDRandomCrop:
    if not has_boxes:
        raise ValueError("aug_type.type ssd_random_crop needs boxes; take autoaug or randaug here")
    return SSDRandomCrop(
        config.ssd_random_crop_params, config.aspect_ratio_range, config.area_range
    )


def build_image_augmentation(config: common.Augmentation | None) -> ImageAugmentation | None:
    """The augmentation of images without boxes; None for none."""
    return _build(config, has_boxes=False)


def build_box_augmentation(
    config: common.Augmentation | None,
) -> ImageAugmentation | SSDRandomCrop | None:
    """The augmentation of images with boxes, called by `distort_with_boxes`; None for none."""
    return _build(config, has_boxes=True)


def _build(config: common.Augmentation | None, has_boxes: bool) -> Any:
    if config is None or config.type is None:
        return None
    return registry.lookup(_AUGMENTATIONS, config.type)(config.get(), has_boxes)


def build_three_augment() -> AutoAugment:
    """Grey, solarise or blur, one of them per image (DeiT III)."""
    # The blur's sigma runs from 0.1 to 2 then: its level is 1 of 10.
    return AutoAugment("deit3_three_augment", translate_const=20.0)


def build_random_erasing(config: common.RandomErasing | None) -> RandomErasing | None:
    """Random erasing; None for none."""
    return None if config is None else RandomErasing(**config.as_dict())
