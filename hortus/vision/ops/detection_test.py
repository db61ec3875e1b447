import keras
import numpy as np
import pytest
from keras import ops

from hortus.engine import kernels
from hortus.testing import reference_dir
from hortus.vision.ops import anchors, detection, nms

WEIGHTS = (10.0, 10.0, 5.0, 5.0)
MULTILEVEL = {"num_classes": 4, "iou_threshold": 0.5, "max_detections": 15, "top_k": 5000}
STRICT = {"top_k": 20, "score_threshold": 0.3, "iou_threshold": 0.3, "max_detections": 6}


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/nms_detection.npz")


@pytest.fixture
def detect_multilevel(compiled):
    """`detection.detect_multilevel`, compiled for the settings it is called with."""

    def run(*inputs, raw_attributes=None, **settings):
        def function(inputs, raw_attributes):
            return detection.detect_multilevel(*inputs, raw_attributes=raw_attributes, **settings)

        return compiled(function)(inputs, raw_attributes or {})

    return run


def levels(golden, name):
    return {level: golden[f"ml/{name}/level{level}"] for level in ("4", "5", "6")}


def multilevel_inputs(golden):
    raw = [levels(golden, name) for name in ("raw_boxes", "raw_scores", "anchors")]
    return *raw, golden["ml/image_shape"]


def check(golden, found, prefix):
    for name in ("boxes", "scores", "classes"):
        expected = golden[f"{prefix}/detection_{name}"]
        # float32 rounding of coordinates up to 256
        np.testing.assert_allclose(
            ops.convert_to_numpy(getattr(found, name)), expected, rtol=2e-6, atol=1e-4
        )
    np.testing.assert_array_equal(
        ops.convert_to_numpy(found.count), golden[f"{prefix}/num_detections"]
    )


@pytest.mark.parametrize("kernel", [None, kernels.non_max_suppression])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("v1", {"method": "v1"}),
        ("v2", {"method": "per_class"}),
        ("v2_agnostic", {"method": "class_agnostic"}),
        ("v3", {"method": "v3"}),
        ("batched", {"method": "batched"}),
        ("v1_soft0.3", {"method": "v1", "sigma": 0.3}),
        ("v2_coder10_10_5_5", {"box_coder_weights": WEIGHTS}),
        ("v1_topk20_thr0.3_iou0.3_max6", STRICT),
    ],
)
def test_multilevel_equals_reference(golden, detect_multilevel, name, settings, kernel):
    found = detect_multilevel(
        *multilevel_inputs(golden), **{**MULTILEVEL, "kernel": kernel, **settings}
    )
    check(golden, found, f"MultilevelDetectionGenerator/{name}")


@pytest.mark.parametrize("kernel", [None, kernels.non_max_suppression])
def test_attributes_equal_reference(golden, detect_multilevel, kernel):
    found = detect_multilevel(
        *multilevel_inputs(golden),
        raw_attributes={"color": levels(golden, "raw_attr_color")},
        kernel=kernel,
        **MULTILEVEL,
    )
    prefix = "MultilevelDetectionGenerator/v1_attr"
    np.testing.assert_array_equal(
        ops.convert_to_numpy(found.attributes["color"]),
        golden[f"{prefix}/detection_attributes/color"],
    )


def test_decoded_equals_reference(golden):
    boxes, scores = detection.decode_multilevel(*multilevel_inputs(golden), num_classes=4)
    prefix = "MultilevelDetectionGenerator/no_nms/decoded_box"
    np.testing.assert_allclose(ops.convert_to_numpy(boxes), golden[f"{prefix}es"], atol=1e-4)
    np.testing.assert_allclose(ops.convert_to_numpy(scores), golden[f"{prefix}_scores"], rtol=1e-6)
    raw = [golden[f"det/{name}"] for name in ("raw_boxes", "raw_scores", "anchor_boxes")]
    boxes, scores = detection.decode(*raw, golden["det/image_shape"])
    prefix = "DetectionGenerator/no_nms/decoded_box"
    np.testing.assert_allclose(ops.convert_to_numpy(boxes), golden[f"{prefix}es"], atol=1e-4)
    np.testing.assert_allclose(ops.convert_to_numpy(scores), golden[f"{prefix}_scores"], rtol=2e-6)


@pytest.mark.parametrize("kernel", [None, kernels.non_max_suppression])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("v2", {}),
        ("batched", {}),
        ("v1_soft0.5", {"sigma": 0.5}),
        ("v2_sigmoid", {"use_sigmoid": True}),
        ("v2_regw10_10_5_5", {"box_coder_weights": WEIGHTS}),
        (
            "v1_topk10_thr0.2_iou0.3_max7",
            {**STRICT, "top_k": 10, "score_threshold": 0.2, "max_detections": 7},
        ),
        ("v2_class_agnostic_boxes(raw_boxes[:,:,:4])", {}),
    ],
)
def test_second_stage_equals_reference(golden, compiled, name, settings, kernel):
    raw_boxes = golden["det/raw_boxes"]
    if "class_agnostic_boxes" in name:
        raw_boxes = raw_boxes[..., :4]
    settings = {"score_threshold": 0.05, "iou_threshold": 0.5, "max_detections": 20, **settings}
    inputs = [golden[f"det/{name}"] for name in ("raw_scores", "anchor_boxes", "image_shape")]

    def run(*inputs):
        return detection.detect(*inputs, kernel=kernel, **settings)

    found = compiled(run)(raw_boxes, *inputs)
    check(golden, found, f"DetectionGenerator/{name}")


@pytest.mark.parametrize(
    ("method", "case"),
    [
        ("per_class", "many"),
        ("per_class", "few"),
        ("per_class", "crowded"),
        ("class_agnostic", "many"),
        ("soft", "few"),
    ],
)
def test_the_best_anchors_are_enough_or_all_are_taken(monkeypatch, detect_multilevel, method, case):
    random = np.random.RandomState(0)
    generator = anchors.AnchorGenerator(3, 5, 1, (1.0,), 4.0)
    boxes = generator((64, 64))
    raw_boxes = {k: random.normal(0, 0.3, (2, *v.shape)) for k, v in boxes.items()}
    mean, deviation = {"many": (-1, 1), "few": (-9, 3), "crowded": (2, 0.1)}[case]
    raw_scores = {k: random.normal(mean, deviation, (2, *v.shape[:2], 3)) for k, v in boxes.items()}
    if case == "crowded":  # all boxes are one: only with all anchors it is sure that no more come
        raw_boxes = {k: 0.0 * v for k, v in raw_boxes.items()}
        boxes = {k: np.broadcast_to([10, 10, 40, 40], v.shape) for k, v in boxes.items()}

    def run():
        found = detect_multilevel(
            *(
                {k: v.astype("float32") for k, v in x.items()}
                for x in (raw_boxes, raw_scores, boxes)
            ),
            (64, 64),
            num_classes=3,
            method=method,
            sigma=0.3 if method == "soft" else None,
            iou_threshold=0.4,
            max_detections=10,
        )
        return [ops.convert_to_numpy(x) for x in found[:4]]

    expected = run()
    monkeypatch.setattr(detection, "_FIRST_TRY", 16)
    for a, b in zip(run(), expected, strict=True):
        # Soft scores are products in the same order, of the same factors.
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert (expected[3] < 10).any() == (case != "many")


def test_bfloat16_is_computed_in_float32(golden, detect_multilevel):
    raw_boxes, raw_scores, boxes, size = multilevel_inputs(golden)
    raw_scores = {k: ops.cast(v, "bfloat16") for k, v in raw_scores.items()}
    found = detect_multilevel(raw_boxes, raw_scores, boxes, size, **MULTILEVEL)
    scores = ops.convert_to_numpy(found.scores)
    assert scores.dtype == "float32"
    # bfloat16 logits have 8 bits; scores in bfloat16 would be 0.004 apart
    rounded = ops.convert_to_numpy(ops.cast(ops.cast(scores, "bfloat16"), "float32"))
    assert (scores != rounded).mean() > 0.5


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="shapes are static on JAX")
def test_sizes_known_in_the_graph_only_on_tensorflow(golden):
    import tensorflow as tf

    def run(*inputs):
        return tuple(detection.detect_multilevel(*inputs, **MULTILEVEL))

    inputs = tf.nest.map_structure(tf.constant, multilevel_inputs(golden))
    specs = tf.nest.map_structure(
        lambda x: tf.TensorSpec([None, None, None, x.shape[3]] if len(x.shape) == 4 else [None, 2]),
        inputs,
    )
    found = tf.function(run, input_signature=specs, autograph=False)(*inputs)
    check(golden, nms.Detections(*found), "MultilevelDetectionGenerator/v2")
