"""All heads through the contract of `hortus.testing.heads`, at a small size."""

import functools

import numpy as np
import pytest

from hortus.testing import heads as testing
from hortus.vision.modeling import heads
from hortus.vision.modeling.layers.normalization.norm_act import NormAct

ATTRIBUTES = [
    {"name": "depth", "size": 2, "prediction_tower_name": "metric", "num_convs": 2},
    {"name": "speed", "prediction_tower_name": "metric"},
    {"name": "kind", "type": "classification", "size": 3},
]
SEGMENTATION = {"num_convs": 1, "num_filters": 32}
CASES = {
    "retinanet": (
        heads.RetinaNetHead,
        (3, 5, 4, 2),
        {"num_convs": 1, "num_filters": 6, "attribute_heads": ATTRIBUTES},
    ),
    "retinanet_separate": (
        heads.RetinaNetHead,
        (3, 4, 4, {"3": 1, "4": 2}),
        {
            "num_convs": 1,
            "num_filters": 6,
            "share_level_convs": False,
            "use_separable_conv": True,
            "share_classification_heads": True,
            "attribute_heads": ATTRIBUTES[-1:],
        },
    ),
    "rpn": (heads.RPNHead, (3, 5, 2), {"num_convs": 2, "num_filters": 6}),
    "detection": (
        heads.DetectionHead,
        (4,),
        {"num_convs": 1, "num_filters": 6, "num_fcs": 1, "fc_dims": 8},
    ),
    "mask": (heads.MaskHead, (4,), {"num_convs": 1, "num_filters": 6}),
    "segmentation": (
        heads.SegmentationHead,
        (4, 3),
        {**SEGMENTATION, "upsample_factor": 2, "use_depthwise_convolution": True},
    ),
    "segmentation_deeplabv3plus": (
        heads.SegmentationHead,
        (4, 3),
        {**SEGMENTATION, "feature_fusion": "deeplabv3plus", "low_level_num_filters": 5},
    ),
    "segmentation_sum": (
        heads.SegmentationHead,
        (4, 3),
        {
            **SEGMENTATION,
            "feature_fusion": "deeplabv3plus_sum_to_merge",
            "low_level_num_filters": 6,
        },
    ),
    "segmentation_pyramid": (
        heads.SegmentationHead,
        (4, 3),
        {**SEGMENTATION, "feature_fusion": "pyramid_fusion"},
    ),
    "segmentation_panoptic": (
        heads.SegmentationHead,
        (4, 3),
        {
            **SEGMENTATION,
            "feature_fusion": "panoptic_fpn_fusion",
            "decoder_min_level": 3,
            "decoder_max_level": 5,
        },
    ),
    "mask_scoring": (
        heads.MaskScoring,
        (4, [3, 5]),
        {"num_convs": 1, "num_filters": 6, "num_fcs": 1, "fc_dims": 8},
    ),
}
# On JAX, where each operation is compiled for each shape, all of them would take minutes.
SHORT = ("rpn", "mask", "segmentation_deeplabv3plus")


def inputs_of(name, size):
    random = np.random.RandomState(0)

    def normal(*shape):
        return random.normal(size=(2, *shape)).astype("float32")

    def pyramid(levels):
        return {str(level): normal(*(-(-side // 2**level) for side in size), 6) for level in levels}

    if name == "detection":
        return normal(3, 4, 4, 5)
    if name == "mask":
        return normal(3, 4, 4, 5), np.array([[0, 1, 3], [2, -1, 1]], "int32")
    if name == "mask_scoring":
        return normal(*(side // 8 for side in size), 4)
    if name.startswith("segmentation"):
        return pyramid((2, 3)), pyramid((3, 4, 5))
    return pyramid((3, 4, 5))


def check(name, folder):
    head, arguments, settings = CASES[name]
    norm_act = NormAct(activation="swish", norm_momentum=0.9)
    make = functools.partial(
        head, *arguments, norm_act=norm_act, kernel_regularizer="l2", name="head", **settings
    )
    other_inputs = inputs_of(name, (60, 100))
    if name in ("detection", "mask"):
        other_inputs = None
    testing.check(make, inputs_of(name, (64, 64)), folder, other_inputs=other_inputs)


@pytest.mark.parametrize("name", SHORT)
def test_contract(name, tmp_path):
    check(name, tmp_path)


@pytest.mark.parametrize("name", [name for name in CASES if name not in SHORT])
def test_contract_on_tensorflow(name, tmp_path):
    check(name, tmp_path)
