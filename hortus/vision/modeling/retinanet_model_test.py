import json

import keras
import numpy as np
import pytest
from keras import ops

from hortus.core import exp_factory
from hortus.testing import reference_dir
from hortus.testing.backbones import mixed_bfloat16
from hortus.vision import experiments  # noqa: F401
from hortus.vision.configs import retinanet as configs
from hortus.vision.modeling import factory
from hortus.vision.modeling.retinanet_model import RetinaNetModel
from hortus.vision.ops import detection

EXPERIMENTS = ["retinanet_resnetfpn_coco", "retinanet_spinenet_coco", "retinanet_mobile_coco"]
TINY = {
    "num_classes": 4,
    "max_level": 5,
    "anchor": {"num_scales": 1, "aspect_ratios": [1.0, 2.0], "anchor_size": 3.0},
    "backbone": {"type": "resnet", "resnet": {"model_id": 10, "depth_multiplier": 0.125}},
    "decoder": {"type": "fpn", "fpn": {"num_filters": 8}},
    "head": {"num_convs": 1, "num_filters": 8},
    "detection_generator": {"max_num_detections": 7, "pre_nms_score_threshold": 0.001},
}


def tiny_config(**changes):
    config = configs.RetinaNet(input_size=[64, 64, 3])
    config.override({**TINY, **changes})
    return config


def build(config, size=64, **arguments):
    specs = keras.layers.InputSpec(shape=(None, size, size, 3))
    return factory.build_retinanet(specs, config, **arguments)


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
def model():
    """A model that is sure of some anchors; a new one gives all nearly the same score."""
    model, random = build(tiny_config()), np.random.RandomState(1)
    for layer, spread in ((model.head.scores, 1.0), (model.head.boxes, 0.05)):
        kernel = next(w for w in layer.weights if len(w.shape) == 4)
        kernel.assign(random.normal(0, spread, kernel.shape))
    return model


def count(variables):
    return sum(int(np.prod(v.shape)) for v in variables)


def test_parameters_equal_reference():
    entries = json.loads((reference_dir() / "models.json").read_text())["experiment_models"]
    for name in EXPERIMENTS:
        # Variables without values, as only their shapes are asked for.
        with keras.StatelessScope(initialize_variables=False):
            model = build(exp_factory.get_exp_config(name).task.model, 128)
        # There, heads behind the identity decoder come into being at the first call only.
        entry = entries[name]["after_first_call"]
        assert count(model.trainable_weights) == entry["trainable_params"], name
        assert count(model.non_trainable_weights) == entry["non_trainable_params"], name
        assert count(model.head.trainable_weights) == entry["head"]["trainable_params"], name
        assert list(model.checkpoint_items) == entries[name]["checkpoint_items"]
        keras.utils.clear_session()
    entry = entries["retinanet@override"]
    config = exp_factory.get_exp_config("retinanet").task
    config.override({"model": entry["override"]["task"]["model"]})
    with keras.StatelessScope(initialize_variables=False):
        model = build(config.model, 256)
    assert count(model.trainable_weights) == entry["trainable_params"]
    keras.utils.clear_session()


@pytest.mark.parametrize(
    ("backbone", "decoder"),
    [
        ({"type": "spinenet", "spinenet": {"model_id": "49S"}}, "identity"),
        ({"type": "spinenet_mobile", "spinenet_mobile": {"model_id": "49XS"}}, "identity"),
        ({"type": "mobilenet", "mobilenet": {"model_id": "MobileNetV3Small"}}, "fpn"),
        ({"type": "mobiledet", "mobiledet": {"model_id": "MobileDetCPU"}}, "fpn"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["type"],
)
def test_backbones(backbone, decoder):
    kind = backbone["type"]
    if decoder == "identity":
        backbone = {"type": kind, kind: {**backbone[kind], "max_level": 5}}
    config = tiny_config(backbone=backbone, decoder={"type": decoder})
    with keras.StatelessScope(initialize_variables=False):
        model = build(config, 128)
    keras.utils.clear_session()
    specs = (model.decoder or model.backbone).output_specs
    shapes = {level: specs[level] for level in "345"}
    assert [shapes[level][1:3] for level in "345"] == [(16, 16), (8, 8), (4, 4)]
    assert model.head.compute_output_shape(shapes)[0]["4"] == (None, 8, 8, 2 * 4)
    assert model.head.built and (model.decoder is None) == (decoder == "identity")


def test_training_returns_raw_outputs(model, images):
    outputs = run(model, images, training=True)
    assert set(outputs) == {"cls_outputs", "box_outputs"}
    assert {k: v.shape for k, v in outputs["cls_outputs"].items()} == {
        "3": (2, 8, 8, 8),
        "4": (2, 4, 4, 8),
        "5": (2, 2, 2, 8),
    }
    assert outputs["box_outputs"]["5"].shape == (2, 2, 2, 8)


def test_a_new_model_sees_few_objects_on_tensorflow(images):
    scores = 1 / (1 + np.exp(-run(build(tiny_config()), images)["cls_outputs"]["3"]))
    # Every anchor is an object with probability 0.01, give or take small weights.
    np.testing.assert_allclose(scores, 0.01, atol=0.005)


def test_detections_are_those_of_the_raw_outputs(model, images):
    outputs = run(model, images)
    found = detection.detect_multilevel(
        outputs["box_outputs"],
        outputs["cls_outputs"],
        model.anchors((64, 64)),
        (64, 64),
        num_classes=4,
        iou_threshold=0.5,
        score_threshold=0.001,
        max_detections=7,
        top_k=5000,
    )
    assert outputs["num_detections"].tolist() == [7, 7]
    # The same numbers through kernels of one engine; in pixels.
    np.testing.assert_allclose(outputs["detection_boxes"], found.boxes, atol=1e-3)
    np.testing.assert_allclose(outputs["detection_scores"], found.scores, rtol=1e-5)
    np.testing.assert_array_equal(outputs["detection_classes"], found.classes)
    assert outputs["detection_classes"].min() >= 1


def test_detections_end_where_the_image_does(model, images):
    sizes = np.array([[40, 64], [64, 24]], "float32")
    boxes = run(model, images, image_shape=sizes)["detection_boxes"]
    assert (boxes[0, :, [0, 2]].max(), boxes[1, :, [1, 3]].max()) <= (40, 24)
    assert boxes[0, :, [1, 3]].max() > 40


def test_given_anchors_and_intermediate_features_on_tensorflow(model, images):
    expected = run(model, images)
    anchors = model.anchors((64, 64))
    outputs = run(model, images, anchor_boxes=anchors, output_intermediate_features=True)
    np.testing.assert_allclose(
        outputs["detection_boxes"], expected["detection_boxes"], rtol=1e-5, atol=1e-4
    )
    assert outputs["decoder_5"].shape == (2, 2, 2, 8)
    assert outputs["backbone_2"].shape[1:3] == (16, 16)
    moved = run(model, images, anchor_boxes={k: v + 10.0 for k, v in anchors.items()})
    assert np.abs(moved["detection_boxes"] - expected["detection_boxes"]).max() > 5


def test_attributes_on_tensorflow(images):
    heads = [
        {"name": "age", "type": "regression", "size": 2},
        {"name": "kind", "type": "classification", "size": 3},
    ]
    model = build(tiny_config(head={"num_convs": 0, "num_filters": 8, "attribute_heads": heads}))
    outputs = run(model, images)
    assert outputs["attribute_outputs"]["kind"]["4"].shape == (2, 4, 4, 2 * 3)
    assert outputs["detection_attributes"]["age"].shape == (2, 7, 2)


def test_saves_and_loads_on_tensorflow(tmp_path, model, images):
    expected = run(model, images)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, RetinaNetModel) and loaded.backbone.model_id == 10
    assert [w.path for w in loaded.weights] == [w.path for w in model.weights]
    found = run(loaded, images)
    np.testing.assert_array_equal(found["cls_outputs"]["4"], expected["cls_outputs"]["4"])
    np.testing.assert_array_equal(found["detection_boxes"], expected["detection_boxes"])


def test_makes_no_variables_when_called_on_tensorflow(model, images):
    before = len(model.weights)
    run(model, images)
    assert len(model.weights) == before > 0


def test_sizes_that_are_open_on_tensorflow():
    import tensorflow as tf

    specs = keras.layers.InputSpec(shape=(None, None, None, 3))
    model = factory.build_retinanet(specs, tiny_config())
    # Sizes that are known when images come, as in an exported model.
    call = tf.function(
        lambda x: model(x, training=False), input_signature=[tf.TensorSpec([None, None, None, 3])]
    )
    outputs = call(np.zeros((1, 64, 96, 3), "float32"))
    assert outputs["detection_boxes"].shape == (1, 7, 4)
    assert outputs["cls_outputs"]["3"].shape == (1, 8, 12, 8)


def test_boxes_keep_their_precision_in_bfloat16_on_tensorflow(images):
    with mixed_bfloat16():
        model = build(tiny_config())
    sizes = np.array([[20.3, 20.3], [64, 64]], "float32")
    outputs = run(model, images, image_shape=sizes)
    assert outputs["detection_boxes"].dtype == outputs["detection_scores"].dtype == "float32"
    # bfloat16 would make it 20.25
    assert np.float32(20.3) in outputs["detection_boxes"][0]


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
    with pytest.raises(ValueError, match="no NMS called 'v9'"):
        build(tiny_config(detection_generator={"nms_version": "v9"}))
