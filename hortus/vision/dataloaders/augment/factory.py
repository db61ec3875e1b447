"""From the settings of an experiment to the augmentation they describe."""

from hortus.vision.configs import common
from hortus.vision.dataloaders.augment.auto_augment import AutoAugment
from hortus.vision.dataloaders.augment.base import ImageAugmentation
from hortus.vision.dataloaders.augment.rand_augment import RandAugment
from hortus.vision.dataloaders.augment.random_erasing import RandomErasing
from hortus.vision.dataloaders.augment.ssd_random_crop import SSDRandomCrop


def build_image_augmentation(config: common.Augmentation | None) -> ImageAugmentation | None:
    """The augmentation of images without boxes; None for none."""
    if config is None or config.type is None:
        return None
    if config.type == "autoaug":
        return AutoAugment(**config.autoaug.as_dict())
    if config.type == "randaug":
        return RandAugment(**config.randaug.as_dict())
    raise ValueError(f"aug_type.type must be autoaug or randaug here, got {config.type!r}")


def build_box_augmentation(
    config: common.Augmentation | None,
) -> ImageAugmentation | SSDRandomCrop | None:
    """The augmentation of images with boxes, called by `distort_with_boxes`; None for none."""
    if config is None or config.type is None:
        return None
    if config.type == "randaug":
        return RandAugment.build_for_detection(**config.randaug.as_dict())
    if config.type == "ssd_random_crop":
        crop = config.ssd_random_crop
        return SSDRandomCrop(crop.ssd_random_crop_params, crop.aspect_ratio_range, crop.area_range)
    return build_image_augmentation(config)


def build_three_augment() -> AutoAugment:
    """Grey, solarise or blur, one of them per image (DeiT III)."""
    # The blur's sigma runs from 0.1 to 2 then: its level is 1 of 10.
    return AutoAugment("deit3_three_augment", translate_const=20.0)


def build_random_erasing(config: common.RandomErasing | None) -> RandomErasing | None:
    """Random erasing; None for none."""
    return None if config is None else RandomErasing(**config.as_dict())
