import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.modeling.layers.detection.region_detection_generator import DetectionGenerator


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/nms_detection.npz")


def run(golden, weights=None, **settings):
    layer = DetectionGenerator(**{"max_num_detections": 20, **settings})
    # Through its config, which must be all there is to it.
    layer = DetectionGenerator.from_config(layer.get_config())
    inputs = [golden[f"det/{name}"] for name in ("raw_boxes", "raw_scores", "anchor_boxes")]
    return layer(*inputs, golden["det/image_shape"], regression_weights=weights)


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("v2", {"nms_version": "v2"}),
        ("no_nms", {"apply_nms": False}),
        ("v1_soft0.5", {"nms_version": "v1", "soft_nms_sigma": 0.5}),
        ("v2_sigmoid", {"use_sigmoid_probability": True}),
        ("v2_regw10_10_5_5", {"weights": (10.0, 10.0, 5.0, 5.0)}),
        (
            "v2_topk10_thr0.2_iou0.3_max7",
            {
                "pre_nms_top_k": 10,
                "pre_nms_score_threshold": 0.2,
                "nms_iou_threshold": 0.3,
                "max_num_detections": 7,
            },
        ),
    ],
)
def test_equals_reference_on_tensorflow(golden, key, settings):
    outputs = run(golden, **settings)
    prefix = f"DetectionGenerator/{key}/"
    expected = {k[len(prefix) :]: golden[k] for k in golden.files if k.startswith(prefix)}
    assert set(outputs) == set(expected)
    for name, value in expected.items():
        # float32 rounding of coordinates up to 256
        np.testing.assert_allclose(ops.convert_to_numpy(outputs[name]), value, rtol=2e-6, atol=1e-4)


def test_regions_that_fill_up_are_not_detected():
    logits = np.zeros((1, 40, 3), "float32")
    logits[..., 1] = 9.0
    boxes = np.zeros((1, 40, 4), "float32")
    boxes[0, 7] = [10, 10, 20, 20]
    codes = np.zeros((1, 40, 12), "float32")
    outputs = DetectionGenerator()(codes, logits, boxes, image_shape=(64, 64))
    assert ops.convert_to_numpy(outputs["num_detections"]).tolist() == [1]
    np.testing.assert_allclose(
        ops.convert_to_numpy(outputs["detection_boxes"])[0, 0], [10, 10, 20, 20], atol=1e-5
    )


def test_unknown_method():
    with pytest.raises(ValueError, match="per_class"):
        DetectionGenerator(nms_version="v9")
