import json

import keras
import numpy as np
import pytest

from hortus.core import exp_factory
from hortus.testing import reference_dir
from hortus.vision import experiments  # noqa: F401
from hortus.vision.configs import image_classification as configs
from hortus.vision.modeling import factory
from hortus.vision.modeling.classification_model import ClassificationModel, last_features

CLASSIFIERS = ["resnet_imagenet", "resnet_rs_imagenet"]


def tiny_config(**changes):
    config = configs.ImageClassificationModel(num_classes=7, input_size=[32, 32, 3], **changes)
    config.override({"backbone": {"type": "resnet", "resnet": {"model_id": 10}}})
    return config


def specs(size=32):
    return keras.layers.InputSpec(shape=(None, size, size, 3))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_parameters_equal_reference(name):
    models = json.loads((reference_dir() / "models.json").read_text())["experiment_models"]
    config = exp_factory.get_exp_config(name).task.model
    with keras.device("cpu:0"):
        model = factory.build_classification_model(specs(64), config)
    trainable = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    others = sum(int(np.prod(v.shape)) for v in model.non_trainable_weights)
    assert trainable == models[name]["trainable_params"]
    assert others == models[name]["non_trainable_params"]


def test_logits_and_features():
    images = np.zeros((2, 32, 32, 3), "float32")
    model = factory.build_classification_model(specs(), tiny_config())
    assert model(images).shape == (2, 7)
    assert set(model.checkpoint_items) == {"backbone"}
    pooled = factory.build_classification_model(specs(), tiny_config(), skip_logits_layer=True)
    assert pooled(images).shape == (2, 512)


def test_l2_reaches_all_kernels():
    plain = factory.build_classification_model(specs(), tiny_config())
    assert not plain.losses
    regularizer = keras.regularizers.L2(1e-4)
    model = factory.build_classification_model(specs(), tiny_config(), regularizer)
    kernels = [v for v in model.trainable_variables if v.path.endswith("kernel")]
    total = sum(float(keras.ops.sum(keras.ops.square(v))) for v in kernels) * 1e-4
    # float32 sums of millions of squares
    np.testing.assert_allclose(float(sum(model.losses)), total, rtol=1e-4)


def test_head_batch_norm_adds_its_weights():
    plain = factory.build_classification_model(specs(), tiny_config())
    normed = factory.build_classification_model(specs(), tiny_config(add_head_batch_norm=True))
    assert len(normed.weights) == len(plain.weights) + 4


def test_saves_and_loads(tmp_path):
    model = factory.build_classification_model(specs(), tiny_config(dropout_rate=0.1))
    images = np.random.RandomState(0).normal(size=(2, 32, 32, 3)).astype("float32")
    expected = model(images, training=False)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, ClassificationModel) and loaded.backbone.model_id == 10
    np.testing.assert_array_equal(np.asarray(loaded(images, training=False)), np.asarray(expected))


def test_no_classes_is_an_error():
    config = tiny_config()
    config.num_classes = 0
    with pytest.raises(ValueError, match=r"task\.model\.num_classes"):
        factory.build_classification_model(specs(), config)


def test_last_features():
    assert last_features({"2": 2, "10": 10, "5/depthwise": 5}) == 10
    assert last_features({"4": 4, "pre_logits": 1}) == 1
    with pytest.raises(ValueError, match="no features"):
        last_features({"x": 1})
