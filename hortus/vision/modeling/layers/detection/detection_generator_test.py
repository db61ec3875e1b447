import keras
import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.modeling.layers.detection.detection_generator import MultilevelDetectionGenerator

SETTINGS = {"num_classes": 4, "max_num_detections": 15}


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/nms_detection.npz")


def run(golden, **settings):
    layer = MultilevelDetectionGenerator(**{**SETTINGS, **settings})
    # Through its config, which must be all there is to it.
    layer = MultilevelDetectionGenerator.from_config(layer.get_config())
    raw = [
        {level: golden[f"ml/{name}/level{level}"] for level in "456"}
        for name in ("raw_boxes", "raw_scores", "anchors")
    ]
    return layer(*raw, image_shape=golden["ml/image_shape"])


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("v2_return_decoded", {"nms_version": "v2", "return_decoded": True}),
        ("no_nms", {"apply_nms": False}),
        ("v1_soft0.3", {"nms_version": "v1", "soft_nms_sigma": 0.3}),
        ("v2_agnostic", {"use_class_agnostic_nms": True}),
        ("v2_coder10_10_5_5", {"box_coder_weights": [10.0, 10.0, 5.0, 5.0]}),
        (
            "v1_topk20_thr0.3_iou0.3_max6",
            {
                "pre_nms_top_k": 20,
                "pre_nms_score_threshold": 0.3,
                "nms_iou_threshold": 0.3,
                "max_num_detections": 6,
            },
        ),
    ],
)
def test_equals_reference_on_tensorflow(golden, key, settings):
    outputs = run(golden, **settings)
    prefix = f"MultilevelDetectionGenerator/{key}/"
    expected = {k[len(prefix) :]: golden[k] for k in golden.files if k.startswith(prefix)}
    assert set(outputs) == set(expected)
    for name, value in expected.items():
        # float32 rounding of coordinates up to 256
        np.testing.assert_allclose(ops.convert_to_numpy(outputs[name]), value, rtol=2e-6, atol=1e-4)


def test_raw_outputs_only(golden):
    assert run(golden, apply_nms=False, decode_boxes=False) == {}


def test_unknown_method():
    with pytest.raises(ValueError, match="per_class"):
        MultilevelDetectionGenerator(4, nms_version="v9")


def test_has_no_weights():
    layer = MultilevelDetectionGenerator(4)
    assert layer.built and not layer.weights and layer.dtype_policy.name == "float32"
    assert isinstance(layer, keras.layers.Layer)
