"""Segmentation data sets of TensorFlow Datasets: which features are the image and the mask."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources.factory import by_name

_OUT = 255
"""What does not count, in the lists below."""


@dataclasses.dataclass(frozen=True)
class Features:
    """Where a data set has what."""

    image: str
    mask: str
    classes: Sequence[int] = ()
    """Class number by the number in the mask; empty if they are the same."""


# Cityscapes' 34 kinds of objects, of which 19 are classes.
_CITYSCAPES = {
    kind: number
    for number, kind in enumerate(
        (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
    )
}
KNOWN = {
    "cityscapes": Features(
        "image_left",
        "segmentation_label",
        tuple(_CITYSCAPES.get(kind, _OUT) for kind in range(256)),
    ),
    # 1 is the animal, 2 the background, 3 the border between them.
    "oxford_iiit_pet": Features("image", "segmentation_mask", (_OUT, 1, 0, *[_OUT] * 253)),
    # 0 is none of the 150 classes.
    "scene_parse150": Features("image", "annotation", (_OUT, *range(255))),
}
"""By the first part of the data set's name."""


def tfds_input(
    params: configs.DataConfig, image_key: str, mask_key: str
) -> tuple[configs.DataConfig, Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]]:
    """The config that reads encoded images and masks, and the decoder that names them.

    Args:
      params: with `tfds_name`.
      image_key: key for the image in what the decoder returns.
      mask_key: key for the mask.
    """
    found = [features_of(name) for name in by_name(params.tfds_name).values()]
    if len(set(found)) > 1:
        raise DataError("data sets of TensorFlow Datasets with different features cannot be mixed")
    features = found[0]
    params = dataclasses.replace(
        params,
        tfds_skip_decoding_feature=f"{features.image},{features.mask}",
        tfds_as_supervised=False,
    )

    def decode(example: dict[str, tf.Tensor]) -> dict[str, Any]:
        parts = {image_key: example[features.image], mask_key: example[features.mask]}
        if features.classes:
            parts["classes"] = tf.constant(features.classes, tf.int32)
        return parts

    return params, decode


def features_of(name: str) -> Features:
    """The features of a data set; an error for one that is not known."""
    first = name.split("/")[0].split(":")[0]
    if first not in KNOWN:
        raise DataError(
            f"tfds_name {name!r}: which of its features are the image and the mask is known for "
            f"{', '.join(KNOWN)} only. Write its images and masks to two folders, and use "
            "file_type masks"
        )
    return KNOWN[first]
