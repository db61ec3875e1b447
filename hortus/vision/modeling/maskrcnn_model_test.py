import json

import keras
import numpy as np
import pytest
from keras import ops

from hortus.core import exp_factory
from hortus.testing import backbones as testing
from hortus.testing import reference_dir
from hortus.vision import experiments  # noqa: F401
from hortus.vision.configs import maskrcnn as configs
from hortus.vision.modeling import factory
from hortus.vision.modeling.maskrcnn_model import MaskRCNNModel

EXPERIMENTS = [
    "fasterrcnn_resnetfpn_coco",
    "maskrcnn_resnetfpn_coco",
    "maskrcnn_spinenet_coco",
    "maskrcnn_mobilenet_coco",
    "cascadercnn_spinenet_coco",
]
TINY = {
    "num_classes": 4,
    "min_level": 3,
    "max_level": 5,
    "anchor": {"aspect_ratios": [1.0, 2.0], "anchor_size": 2.0},
    "backbone": {"type": "resnet", "resnet": {"model_id": 10, "depth_multiplier": 0.125}},
    "decoder": {"type": "fpn", "fpn": {"num_filters": 8}},
    "rpn_head": {"num_filters": 8},
    "detection_head": {"num_convs": 1, "num_filters": 8, "fc_dims": 16},
    "mask_head": {"num_convs": 1, "num_filters": 8},
    "roi_generator": {
        "pre_nms_top_k": 30,
        "num_proposals": 20,
        "test_pre_nms_top_k": 30,
        "test_num_proposals": 20,
    },
    "roi_sampler": {"num_sampled_rois": 12, "foreground_fraction": 0.5},
    "roi_aligner": {"crop_size": 3},
    "mask_roi_aligner": {"crop_size": 4},
    "mask_sampler": {"num_sampled_masks": 5},
    "detection_generator": {"max_num_detections": 6, "pre_nms_score_threshold": 0.001},
}
CASCADE = {
    "roi_sampler": {
        "num_sampled_rois": 12,
        "foreground_fraction": 0.5,
        "cascade_iou_thresholds": [0.6, 0.7],
    },
    "detection_head": {
        "num_convs": 0,
        "fc_dims": 16,
        "class_agnostic_bbox_pred": True,
        "cascade_class_ensemble": True,
    },
}


def tiny_config(**changes):
    config = configs.MaskRCNN(input_size=[64, 64, 3])
    config.override({**TINY, **changes})
    return config


def build(config, size=64, **arguments):
    specs = keras.layers.InputSpec(shape=(None, size, size, 3))
    return factory.build_maskrcnn(specs, config, **arguments)


def run(model, images, **arguments):
    """Compiled as a whole on JAX, where operations are slow one by one."""
    arguments = {"training": False, **arguments}

    def call(images):
        return model(images, **arguments)

    if keras.backend.backend() == "jax":
        import jax

        def without_updates(images):
            with keras.StatelessScope():  # what training would update stays inside
                return model(images, **arguments)

        call = jax.jit(without_updates)
    return keras.tree.map_structure(ops.convert_to_numpy, call(images))


@pytest.fixture(scope="module")
def images():
    return np.random.RandomState(0).normal(size=(2, 64, 64, 3)).astype("float32")


@pytest.fixture(scope="module")
def truth():
    """Two objects in the first image, none in the second."""
    boxes = np.full((2, 3, 4), -1.0, "float32")
    boxes[0, :2] = [[8, 8, 40, 40], [30, 4, 60, 30]]
    classes = np.array([[1, 3, -1], [-1, -1, -1]])
    masks = np.zeros((2, 3, 8, 8), "float32")
    masks[0, 0, :, :4] = 1.0
    masks[0, 1] = 1.0
    return {"gt_boxes": boxes, "gt_classes": classes, "gt_masks": masks}


@pytest.fixture(scope="module")
def model():
    """A model that is sure of some regions; a new one gives all nearly the same score."""
    return sure(build(tiny_config()))


def sure(model):
    random = np.random.RandomState(1)
    heads = [(model.rpn_head.scores, 1.0), (model.rpn_head.boxes, 0.1)]
    for head in model.detection_head:
        heads += [(head.scores, 1.0), (head.boxes, 0.3)]
    for layer, spread in heads:
        kernel = next(w for w in layer.weights if len(w.shape) > 1)
        kernel.assign(random.normal(0, spread, kernel.shape))
    return model


def count(variables):
    return sum(int(np.prod(v.shape)) for v in variables)


# ---- reference ------------------------------------------------------------------------------


def test_parameters_equal_reference():
    entries = json.loads((reference_dir() / "models.json").read_text())["experiment_models"]
    for name in EXPERIMENTS:
        # Variables without values, as only their shapes are asked for.
        with keras.StatelessScope(initialize_variables=False):
            model = build(exp_factory.get_exp_config(name).task.model, 128)
        entry = entries[name]
        assert count(model.trainable_weights) == entry["trainable_params"], name
        assert count(model.non_trainable_weights) == entry["non_trainable_params"], name
        assert list(model.checkpoint_items) == entry["checkpoint_items"]
        for part, expected in entry["components"].items():
            part, _, number = part.partition("[")
            layer = getattr(model, part)
            layer = layer[int(number[:-1])] if number else layer
            assert count(layer.trainable_weights) == expected["trainable_params"], (name, part)
        keras.utils.clear_session()


def reference_cases():
    names = json.loads((reference_dir() / "golden/forward_two_stage.json").read_text())
    # The others take as long as they are large, and longer to be compiled by JAX.
    slow = {name for name in names if name != "maskrcnn_mobilenet_coco"}
    return [pytest.param(name, marks=[pytest.mark.slow] if name in slow else []) for name in names]


@pytest.mark.parametrize("name", reference_cases())
def test_outputs_equal_reference(name):
    golden = np.load(reference_dir() / "golden/forward_two_stage.npz")
    entry = json.loads((reference_dir() / "golden/forward_two_stage.json").read_text())[name]
    config = exp_factory.get_exp_config(name).task
    config.override({"model": entry["model"]})
    model = build(config.model, 128)
    testing.set_known_weights(model)
    for weight in model.weights:
        if len(weight.shape) >= 2:
            weight.assign(testing.value_of(weight) * entry["kernel_factor"])
    assert count(model.trainable_weights) == entry["parameters"]
    outputs = run(model, golden[f"{name}/images"], image_shape=golden[f"{name}/image_shape"])

    for key, (shape, dtype, largest, deviation) in entry["outputs"].items():
        if key.startswith(("backbone_features", "decoder_features")):
            continue
        value = outputs
        for part in key.split("/"):
            value = value[part]
        assert list(value.shape) == shape and value.dtype == dtype, key
        if not key.startswith("detection_"):
            np.testing.assert_allclose(
                [np.abs(value).max(), value.std()], [largest, deviation], rtol=1e-4, err_msg=key
            )
        if f"{name}/{key}" in golden and key.startswith("rpn"):
            # float32 on other kernels than the reference's; measured: 7e-6 at most.
            np.testing.assert_allclose(value, golden[f"{name}/{key}"], atol=2e-5)
    for image in range(2):
        compare_detections(golden, name, outputs, image)
    if f"{name}/detection_masks/idx" in golden and name != "cascadercnn_spinenet_coco":
        # In the cascade all detections have nearly the same score, and another order.
        picked = outputs["detection_masks"].ravel()[golden[f"{name}/detection_masks/idx"]]
        np.testing.assert_allclose(picked, golden[f"{name}/detection_masks/sample"], atol=2e-5)


def compare_detections(golden, name, outputs, image):
    """Each detection of the reference is there, with its class and score, and no other."""
    boxes, scores, classes = (
        (outputs[f"detection_{key}"][image], golden[f"{name}/detection_{key}"][image])
        for key in ("boxes", "scores", "classes")
    )
    assert outputs["num_detections"][image] == golden[f"{name}/num_detections"][image]
    apart = np.abs(boxes[1][:, None] - boxes[0][None]).max(-1)
    apart += 1e3 * (classes[1][:, None] != classes[0][None])
    # Boxes that begin beyond the end of the image are cut to the same line.
    apart += 10.0 * np.abs(scores[1][:, None] - scores[0][None])
    # Pixels; regions that float32 rounds move by a few ten-thousandths. Measured: 5e-4 at most.
    assert apart.min(0).max() < 2e-3 and apart.min(1).max() < 2e-3


# ---- training -------------------------------------------------------------------------------


def test_training_returns_what_losses_compare(model, images, truth):
    outputs = run(model, images, training=True, **truth)
    assert {k: v.shape for k, v in outputs["rpn_scores"].items()} == {
        "3": (2, 8, 8, 2),
        "4": (2, 4, 4, 2),
        "5": (2, 2, 2, 2),
    }
    shapes = {k: v.shape for k, v in outputs.items() if not k.startswith("rpn")}
    assert shapes == {
        "class_outputs": (2, 12, 4),
        "box_outputs": (2, 12, 16),
        "class_targets": (2, 12),
        "box_targets": (2, 12, 4),
        "target_counts": (2, 12),
        "mask_outputs": (2, 5, 8, 8),
        "mask_targets": (2, 5, 8, 8),
        "mask_class_targets": (2, 5),
    }
    assert outputs["class_targets"][0].any() and not outputs["class_targets"][1].any()
    # Both objects are among the regions themselves, and need no correction there.
    is_object = outputs["class_targets"][0] > 0
    exact = np.abs(outputs["box_targets"][0]).max(-1) < 1e-6
    assert set(outputs["class_targets"][0][is_object & exact]) == {1, 3}
    classes = outputs["mask_class_targets"][0]
    assert set(classes) <= {0, 1, 3} and not outputs["mask_class_targets"][1].any()
    assert set(np.unique(outputs["mask_targets"])) <= {0.0, 1.0}


def test_training_of_a_cascade(images, truth):
    model = build(tiny_config(**CASCADE))
    outputs = run(model, images, training=True, **truth)
    for suffix in ("", "_1", "_2"):
        assert outputs[f"class_outputs{suffix}"].shape == (2, 12, 4)
        assert outputs[f"box_outputs{suffix}"].shape == (2, 12, 4)
        assert outputs[f"class_targets{suffix}"].shape == (2, 12)
    # Each stage is stricter about what shows an object than the one before; a new model hardly
    # moves regions, and the objects themselves are among them.
    found = [(outputs[f"class_targets{suffix}"] > 0).sum() for suffix in ("", "_1", "_2")]
    assert found[0] >= found[1] >= found[2] >= 2
    outputs = run(model, images)
    mean = sum(outputs[f"class_outputs{suffix}"] for suffix in ("", "_1", "_2")) / 3
    np.testing.assert_allclose(outputs["cls_outputs"], mean, atol=1e-6)


def test_a_cascade_may_have_boxes_by_class_on_tensorflow(images, truth):
    head = {**CASCADE["detection_head"], "class_agnostic_bbox_pred": False}
    model = build(tiny_config(**{**CASCADE, "detection_head": head}))
    outputs = run(model, images, training=True, **truth)
    assert outputs["box_outputs_2"].shape == (2, 12, 16)
    assert run(model, images)["detection_boxes"].shape == (2, 6, 4)


def test_crowds_are_no_objects_on_tensorflow(model, images, truth):
    crowd = np.array([[True, False, False], [False] * 3])
    outputs = run(model, images, training=True, gt_is_crowd=crowd, **truth)
    assert set(outputs["class_targets"][0]) == {0, 3}


# ---- detection ------------------------------------------------------------------------------


def test_detections_and_masks(model, images):
    outputs = run(model, images)
    assert outputs["detection_masks"].shape == (2, 6, 8, 8)
    assert outputs["num_detections"].tolist() == [6, 6]
    assert outputs["detection_masks"].min() > 0 and outputs["detection_masks"].max() < 1
    assert (np.diff(outputs["detection_scores"]) <= 0).all()
    assert outputs["detection_classes"].min() >= 1
    sizes = np.array([[40, 64], [64, 24]], "float32")
    boxes = run(model, images, image_shape=sizes)["detection_boxes"]
    assert (boxes[0, :, [0, 2]].max(), boxes[1, :, [1, 3]].max()) <= (40, 24)


def test_boxes_only_on_tensorflow(images, truth):
    changes = {"include_mask": False, "mask_head": None, "mask_sampler": None}
    model = build(tiny_config(**changes, mask_roi_aligner=None))
    assert "mask_head" not in model.checkpoint_items
    assert "detection_masks" not in run(model, images)
    assert "mask_outputs" not in run(model, images, training=True, **truth)


def test_masks_of_larger_boxes_on_tensorflow(images, truth):
    model = sure(build(tiny_config(outer_boxes_scale=1.5)))
    outputs = run(model, images)
    inner, outer = outputs["detection_boxes"], outputs["detection_outer_boxes"]
    assert (outer[..., :2] <= inner[..., :2]).all() and (outer[..., 2:] >= inner[..., 2:]).all()
    assert (outer != inner).any() and outer.max() <= 64
    trained = run(model, images, training=True, **truth)
    # The second object fills its box, but not the larger one.
    full = trained["mask_targets"][0][trained["mask_class_targets"][0] == 3]
    assert len(full) and 0.2 < full.mean() < 0.95


def test_class_agnostic_masks_on_tensorflow(images, truth):
    head = {"num_convs": 1, "num_filters": 8, "class_agnostic": True}
    model = build(tiny_config(mask_head=head))
    assert model.mask_head.logits.filters == 1
    assert run(model, images, training=True, **truth)["mask_outputs"].shape == (2, 5, 8, 8)


@pytest.mark.parametrize(
    ("backbone", "decoder"),
    [
        ({"type": "spinenet", "spinenet": {"model_id": "49S"}}, {"type": "identity"}),
        ({"type": "mobilenet", "mobilenet": {"model_id": "MobileNetV3Small"}}, {"type": "fpn"}),
        ({"type": "resnet", "resnet": {"model_id": 18}}, {"type": "nasfpn"}),
    ],
    ids=["spinenet", "mobilenet", "nasfpn"],
)
def test_backbones_and_decoders(backbone, decoder):
    config = tiny_config(backbone=backbone, decoder=decoder, max_level=7)
    with keras.StatelessScope(initialize_variables=False):
        model = build(config, 128)
    keras.utils.clear_session()
    assert (model.decoder is None) == (decoder["type"] == "identity")
    assert model.rpn_head.built and model.mask_head.built


# ---- the model as a Keras model -------------------------------------------------------------


def test_saves_and_loads_on_tensorflow(tmp_path, images):
    model = sure(build(tiny_config(**CASCADE)))
    expected = run(model, images)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, MaskRCNNModel) and len(loaded.detection_head) == 3
    assert [w.path for w in loaded.weights] == [w.path for w in model.weights]
    found = run(loaded, images)
    np.testing.assert_array_equal(found["detection_boxes"], expected["detection_boxes"])
    np.testing.assert_array_equal(found["detection_masks"], expected["detection_masks"])


def test_names_are_structural_on_tensorflow():
    paths = [w.path for w in build(tiny_config(**CASCADE)).weights]
    assert len(set(paths)) == len(paths)
    again = [w.path for w in build(tiny_config(**CASCADE)).weights]
    assert paths == again
    assert {"detection_head/scores/kernel", "detection_head_2/scores/kernel"} <= set(paths)


def test_makes_no_variables_when_called_on_tensorflow(model, images, truth):
    before = len(model.weights)
    run(model, images)
    run(model, images, training=True, **truth)
    assert len(model.weights) == before > 0


def test_boxes_keep_their_precision_in_bfloat16_on_tensorflow(images, truth):
    with testing.mixed_bfloat16():
        model = sure(build(tiny_config()))
    sizes = np.array([[20.3, 20.3], [64, 64]], "float32")
    outputs = run(model, images, image_shape=sizes)
    assert outputs["detection_boxes"].dtype == outputs["detection_masks"].dtype == "float32"
    # bfloat16 would make it 20.25
    assert np.float32(20.3) in outputs["detection_boxes"][0]
    trained = run(model, images, training=True, **truth)
    assert trained["box_targets"].dtype == trained["mask_targets"].dtype == "float32"


def test_sizes_that_are_open_on_tensorflow():
    import tensorflow as tf

    specs = keras.layers.InputSpec(shape=(None, None, None, 3))
    model = factory.build_maskrcnn(specs, tiny_config())
    # Sizes that are known when images come, as in an exported model.
    call = tf.function(
        lambda x: model(x, training=False), input_signature=[tf.TensorSpec([None, None, None, 3])]
    )
    outputs = call(np.zeros((1, 64, 96, 3), "float32"))
    assert outputs["detection_boxes"].shape == (1, 6, 4)
    assert outputs["rpn_scores"]["3"].shape == (1, 8, 12, 2)


def test_l2_reaches_all_kernels_on_tensorflow(model):
    assert not model.losses
    regularized = build(tiny_config(), l2_regularizer=keras.regularizers.L2(1e-4))
    kernels = [v for v in regularized.trainable_weights if v.path.endswith("kernel")]
    assert len(regularized.losses) >= len({id(v) for v in kernels}) > 20


def test_says_what_is_wrong():
    with pytest.raises(ValueError, match=r"task\.model\.num_classes"):
        build(tiny_config(num_classes=1))
    with pytest.raises(ValueError, match=r"levels 3 to 7 .* levels 2, 3, 4, 5 only"):
        build(tiny_config(max_level=7, decoder={"type": "identity"}))
    model = build(tiny_config())
    with pytest.raises(ValueError, match="one detection head and one sampler for each stage"):
        MaskRCNNModel.from_config({**model.get_config(), "detection_head": []})
