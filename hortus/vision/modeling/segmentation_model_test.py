import json

import keras
import numpy as np
import pytest

from hortus.core import exp_factory
from hortus.testing import reference_dir
from hortus.testing.open_sizes import call_with_open_sizes
from hortus.vision import experiments  # noqa: F401
from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.modeling import factory
from hortus.vision.modeling.segmentation_model import SegmentationModel

EXPERIMENTS = [
    "mnv2_deeplabv3_cityscapes",
    "mnv2_deeplabv3_pascal",
    "mnv2_deeplabv3plus_cityscapes",
    "seg_deeplabv3_pascal",
    "seg_deeplabv3plus_cityscapes",
    "seg_deeplabv3plus_pascal",
    "seg_resnetfpn_pascal",
]
SCORING = {"fc_input_size": [4, 4], "num_convs": 1, "num_filters": 8, "fc_dims": 16}


def tiny_config(**changes):
    config = configs.SemanticSegmentationModel(num_classes=5, input_size=[None, None, 3])
    config.override(
        {
            "backbone": {"type": "resnet", "resnet": {"model_id": 10, "depth_multiplier": 0.25}},
            "decoder": {"type": "aspp", "aspp": {"level": 4, "num_filters": 16}},
            "head": {"level": 4, "num_convs": 1, "num_filters": 16},
            **changes,
        }
    )
    return config


def specs(height=None, width=None):
    return keras.layers.InputSpec(shape=(None, height, width, 3))


def count(variables):
    return sum(int(np.prod(v.shape)) for v in variables)


def test_parameters_equal_reference_on_tensorflow():
    models = json.loads((reference_dir() / "models.json").read_text())["experiment_models"]
    built = {}
    for name in EXPERIMENTS:
        expected, config = models[name], exp_factory.get_exp_config(name).task.model
        # Building a ResNet-101 takes seconds, and several experiments have the same.
        key = str(config.backbone.as_dict())
        model = factory.build_segmentation_model(
            specs(*config.input_size[:2]), config, backbone=built.get(key)
        )
        built[key] = model.backbone
        assert count(model.trainable_variables) == expected["trainable_params"], name
        assert count(model.non_trainable_variables) == expected["non_trainable_params"], name
        assert sorted(model.checkpoint_items) == expected["checkpoint_items"], name
        for item, numbers in expected["components"].items():
            weights = model.checkpoint_items[item].trainable_variables
            assert count(weights) == numbers["trainable_params"], (name, item)


def test_general_experiment_equals_reference_on_tensorflow():
    models = json.loads((reference_dir() / "models.json").read_text())["experiment_models"]
    expected = models["semantic_segmentation@override"]
    config = exp_factory.get_exp_config("semantic_segmentation").task.model
    config.override(expected["override"]["task"]["model"])
    model = factory.build_segmentation_model(specs(256, 256), config)
    assert count(model.trainable_variables) == expected["trainable_params"]
    assert "decoder" not in model.checkpoint_items and model.decoder is None


@pytest.mark.parametrize("pool", [[], [64, 48]])
def test_any_height_and_width_with_image_pooling_on_tensorflow(pool):
    config = tiny_config()
    config.override({"decoder": {"aspp": {"pool_kernel_size": pool, "dilation_rates": [2]}}})
    model = factory.build_segmentation_model(specs(), config)
    for height, width in ((64, 96), (33, 75)):
        images = np.random.RandomState(0).normal(size=(1, height, width, 3)).astype("float32")
        logits = model(images, training=False)["logits"]
        assert logits.shape == (1, -(-height // 16), -(-width // 16), 5)
        late = call_with_open_sizes(lambda x: model(x, training=False), images)["logits"]
        # Sizes known late take another way through pooling and resizing: float32 rounding.
        np.testing.assert_allclose(np.asarray(late), np.asarray(logits), rtol=1e-4, atol=1e-5)


def test_deeplabv3plus_takes_odd_sizes():
    head = {"feature_fusion": "deeplabv3plus", "level": 4, "num_convs": 1, "num_filters": 8}
    model = factory.build_segmentation_model(specs(), tiny_config(head=head))
    assert model(np.zeros((1, 50, 75, 3), "float32"))["logits"].shape == (1, 13, 19, 5)


def test_mask_scores():
    config = tiny_config(mask_scoring_head=SCORING)
    model = factory.build_segmentation_model(specs(32, 32), config)
    outputs = model(np.zeros((2, 32, 32, 3), "float32"))
    assert outputs["mask_scores"].shape == (2, 5)
    assert list(model.checkpoint_items) == ["backbone", "decoder", "head", "mask_scoring_head"]


def test_saves_and_loads_on_tensorflow(tmp_path):
    config = tiny_config(mask_scoring_head=SCORING)
    model = factory.build_segmentation_model(specs(), config, keras.regularizers.L2(1e-4))
    images = np.random.RandomState(0).normal(size=(1, 32, 32, 3)).astype("float32")
    expected = model(images, training=False)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, SegmentationModel) and len(loaded.losses) == len(model.losses)
    for key, value in loaded(images, training=False).items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(expected[key]))


def test_no_classes_is_an_error():
    config = tiny_config()
    config.num_classes = 0
    with pytest.raises(ValueError, match=r"task\.model\.num_classes"):
        factory.build_segmentation_model(specs(), config)
