"""All heads against the reference: parameters, shapes, and outputs for known weights."""

import hashlib
import json

import keras
import numpy as np
import pytest

from hortus.testing import backbones as testing
from hortus.testing import reference_dir
from hortus.testing.heads import evaluate
from hortus.vision.modeling import heads
from hortus.vision.modeling.decoders.fpn import FPN

PARAMETERS = {
    "DetectionHead/c91_class_agnostic_roi7": {"class_agnostic_bbox_pred": True},
    "DetectionHead/c91_convs0_fcs2_roi7": {},
    "DetectionHead/c91_convs4_fcs1_1024_roi7": {"num_convs": 4, "num_fcs": 1},
    "DetectionHead/c91_roi7": {},
    "DetectionHead/c91_sepconv_roi7": {"use_separable_conv": True},
    "MaskHead/c91_class_agnostic_roi14": {"class_agnostic": True},
    "MaskHead/c91_roi14": {},
    "MaskHead/c91_sepconv_roi14": {"use_separable_conv": True},
    "MaskHead/c91_upsample4_roi14": {"upsample_factor": 4},
    "MaskScoring/c21_convs3_f256_fcs2_1024_fcin14x14_in32x32x21": {"fc_input_size": [14, 14]},
    "RPNHead/l2_6_a3_convs1_f256": {},
    "RPNHead/l2_6_a3_sepconv": {"use_separable_conv": True},
    "RetinaNetHead/l3_7_c91_a9_attr(color regression size2, kind classification size3)": {
        "attribute_heads": [
            {"name": "color", "type": "regression", "size": 2},
            {"name": "kind", "type": "classification", "size": 3},
        ]
    },
    "RetinaNetHead/l3_7_c91_a9_convs4_f256": {},
    "RetinaNetHead/l3_7_c91_a9_not_share_level_convs": {"share_level_convs": False},
    "RetinaNetHead/l3_7_c91_a9_sepconv": {"use_separable_conv": True},
    "RetinaNetHead/l3_7_c91_a9_share_classification_heads": {"share_classification_heads": True},
    "SegmentationHead/l3_c21_convs2_f256": {},
    "SegmentationHead/l3_c21_deeplabv3plus_low2_f48": {"feature_fusion": "deeplabv3plus"},
    "SegmentationHead/l3_c21_deeplabv3plus_sum_to_merge": {
        "feature_fusion": "deeplabv3plus_sum_to_merge",
        "low_level_num_filters": 256,
    },
    "SegmentationHead/l3_c21_depthwise": {"use_depthwise_convolution": True},
    "SegmentationHead/l3_c21_panoptic_fpn_fusion": {
        "feature_fusion": "panoptic_fpn_fusion",
        "decoder_min_level": 3,
        "decoder_max_level": 5,
    },
    "SegmentationHead/l3_c21_pyramid_fusion": {"feature_fusion": "pyramid_fusion"},
    "SegmentationHead/l3_c21_upsample2_k3": {"upsample_factor": 2, "prediction_kernel_size": 3},
}
ARGUMENTS = {
    "DetectionHead": (91,),
    "MaskHead": (91,),
    "MaskScoring": (21,),
    "RPNHead": (2, 6, 3),
    "RetinaNetHead": (3, 7, 91, 9),
    "SegmentationHead": (21, 3),
}


def pyramid(levels, channels=256):
    return {str(level): (None, 256 // 2**level, 256 // 2**level, channels) for level in levels}


INPUTS = {
    "DetectionHead": (None, 10, 7, 7, 256),
    "MaskHead": ((None, 10, 14, 14, 256), (None, 10)),
    "MaskScoring": (None, 32, 32, 21),
    "RPNHead": pyramid(range(2, 7)),
    "RetinaNetHead": pyramid(range(3, 8)),
    "SegmentationHead": (pyramid([2, 3, 4, 5]), pyramid([3, 4, 5, 6, 7])),
}


def test_parameters_and_shapes():
    entries = json.loads((reference_dir() / "models.json").read_text())["heads"]
    assert set(entries) == set(PARAMETERS)
    for key, entry in entries.items():
        kind = key.partition("/")[0]
        # Variables without values, as only their shapes are asked for.
        with keras.StatelessScope(initialize_variables=False):
            head = getattr(heads, kind)(*ARGUMENTS[kind], **PARAMETERS[key])
            head.build(INPUTS[kind])
        shapes = sorted(str(tuple(v.shape)) for v in head.trainable_weights)
        ours = {
            "trainable_params": sum(int(np.prod(v.shape)) for v in head.trainable_weights),
            "non_trainable_params": sum(int(np.prod(v.shape)) for v in head.non_trainable_weights),
            "trainable_shapes_md5": hashlib.md5("|".join(shapes).encode()).hexdigest()[:12],
            # Through JSON, which has lists only.
            "outputs": json.loads(json.dumps(head.compute_output_shape(INPUTS[kind]))),
        }
        assert ours == {name: entry[name] for name in ours}, key


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden" / "forward_decoders_heads.npz")


@pytest.fixture(scope="module")
def features(golden):
    """Of the backbone, and of two decoders for them."""
    backbone = {str(level): golden[f"features/level{level}"] for level in range(2, 6)}
    specs = {level: (None, *x.shape[1:]) for level, x in backbone.items()}
    decoders = {
        "l3_7": FPN(specs, 3, 7, num_filters=32),
        "l2_6": FPN(specs, 2, 6, num_filters=32, use_separable_conv=True),
    }
    outputs = {"backbone": backbone}
    for name, decoder in decoders.items():
        testing.set_known_weights(decoder)
        outputs[name] = evaluate(decoder, backbone)
    return outputs


def compare(golden, key, outputs):
    """Outputs of a head, or parts of them, with the reference's under that key."""
    if isinstance(outputs, dict):
        outputs = outputs.items()
    elif isinstance(outputs, tuple):
        outputs = enumerate(outputs)
    else:
        output = keras.ops.convert_to_numpy(outputs)
        assert output.shape == tuple(golden[f"{key}/shape"])
        picked = output.ravel()[golden[f"{key}/sample_idx"]]
        largest = golden[f"{key}/mean_std_absmax"][2]
        # float32 on other kernels than the reference's; measured: 1e-6 at most.
        np.testing.assert_allclose(picked, golden[f"{key}/sample"], atol=1e-5 * largest)
        return
    for name, part in outputs:
        compare(golden, f"{key}/{name}", part)


def run(head, inputs):
    head.build(keras.tree.map_structure(lambda x: (None, *x.shape[1:]), inputs))
    testing.set_known_weights(head)
    return evaluate(head, inputs)


def test_retinanet_head(golden, features):
    head = heads.RetinaNetHead(3, 7, 5, 3, num_convs=2, num_filters=32)
    compare(golden, "RetinaNetHead/c5_a3_convs2_f32", run(head, features["l3_7"])[:2])


def test_rpn_head(golden, features):
    head = heads.RPNHead(2, 6, 3, num_filters=32)
    compare(golden, "RPNHead/a3_f32", run(head, features["l2_6"]))


def test_detection_head(golden):
    head = heads.DetectionHead(5, num_convs=1, num_filters=32, num_fcs=2, fc_dims=64)
    compare(golden, "DetectionHead/c5_convs1_f32_fcs2_64", run(head, golden["roi7"]))


def test_mask_head(golden):
    head = heads.MaskHead(5, num_convs=2, num_filters=32)
    compare(golden, "MaskHead/c5_convs2_f32", run(head, (golden["roi14"], golden["roi_classes"])))


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("f32", {}),
        ("deeplabv3plus", {"feature_fusion": "deeplabv3plus", "low_level_num_filters": 16}),
        ("pyramid_fusion", {"feature_fusion": "pyramid_fusion"}),
        (
            "panoptic_fpn_fusion",
            {
                "feature_fusion": "panoptic_fpn_fusion",
                "decoder_min_level": 3,
                "decoder_max_level": 5,
            },
        ),
    ],
    ids=["no_fusion", "deeplabv3plus", "pyramid_fusion", "panoptic_fpn_fusion"],
)
def test_segmentation_head(golden, features, key, settings):
    head = heads.SegmentationHead(5, 3, num_filters=32, **settings)
    inputs = (features["backbone"], features["l3_7"])
    compare(golden, f"SegmentationHead/c5_l3_{key}", run(head, inputs))


def test_mask_scoring(golden):
    head = heads.MaskScoring(5, [8, 8], num_convs=2, num_filters=16, fc_dims=32)
    compare(golden, "MaskScoring/c5", run(head, golden["mask_scoring_in"]))
