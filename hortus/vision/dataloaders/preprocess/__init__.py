"""Image, box, mask and video functions that parsers are made of.

Images are [height, width, channels]; boxes are rows of ymin, xmin, ymax, xmax. A random function
takes `seed`, two integers that determine its result; without one it draws its own.
"""

from hortus.vision.dataloaders.preprocess.boxes import (
    clip_or_pad_to_fixed_size,
    denormalize_boxes,
    horizontal_flip_boxes,
    nonempty_box_indices,
    normalize_boxes,
    pad_groundtruths_to_fixed_size,
    process_source_id,
    resize_and_crop_boxes,
    vertical_flip_boxes,
)
from hortus.vision.dataloaders.preprocess.color import (
    color_jitter,
    random_brightness,
    random_contrast,
    random_jpeg_quality,
    random_saturation,
)
from hortus.vision.dataloaders.preprocess.crop import (
    CENTER_CROP_FRACTION,
    center_crop_image,
    center_window,
    decode_and_center_crop,
    decode_and_random_crop,
    decode_image,
    random_crop_image,
)
from hortus.vision.dataloaders.preprocess.flip import (
    is_flipped,
    random_horizontal_flip,
    random_vertical_flip,
)
from hortus.vision.dataloaders.preprocess.masks import (
    horizontal_flip_masks,
    resize_and_crop_masks,
    vertical_flip_masks,
)
from hortus.vision.dataloaders.preprocess.normalize import (
    MEAN_NORM,
    MEAN_RGB,
    MEDIAN_RGB,
    STDDEV_NORM,
    STDDEV_RGB,
    normalize_image,
    normalize_scaled_float_image,
)
from hortus.vision.dataloaders.preprocess.resize import (
    compute_padded_size,
    resize_and_crop_image,
    resize_and_crop_image_by_sides,
    resize_image,
    resize_images,
)

__all__ = [
    "CENTER_CROP_FRACTION",
    "MEAN_NORM",
    "MEAN_RGB",
    "MEDIAN_RGB",
    "STDDEV_NORM",
    "STDDEV_RGB",
    "center_crop_image",
    "center_window",
    "clip_or_pad_to_fixed_size",
    "color_jitter",
    "compute_padded_size",
    "decode_and_center_crop",
    "decode_and_random_crop",
    "decode_image",
    "denormalize_boxes",
    "horizontal_flip_boxes",
    "horizontal_flip_masks",
    "is_flipped",
    "nonempty_box_indices",
    "normalize_boxes",
    "normalize_image",
    "normalize_scaled_float_image",
    "pad_groundtruths_to_fixed_size",
    "process_source_id",
    "random_brightness",
    "random_contrast",
    "random_crop_image",
    "random_horizontal_flip",
    "random_jpeg_quality",
    "random_saturation",
    "random_vertical_flip",
    "resize_and_crop_boxes",
    "resize_and_crop_image",
    "resize_and_crop_image_by_sides",
    "resize_and_crop_masks",
    "resize_image",
    "resize_images",
    "vertical_flip_boxes",
    "vertical_flip_masks",
]
