import keras
import numpy as np
import pytest

from hortus.core import task_factory
from hortus.vision.configs import image_classification, retinanet, semantic_segmentation
from hortus.vision.tasks.task_model import build_task_model

BACKBONE = {"type": "mobilenet", "mobilenet": {"filter_size_scale": 0.25}}
TASKS = {
    "classification": (image_classification.ImageClassificationTask, {"num_classes": 3}),
    "detection": (
        retinanet.RetinaNetTask,
        {
            "num_classes": 3,
            "max_level": 5,
            "decoder": {"fpn": {"num_filters": 8}},
            "head": {"num_convs": 1, "num_filters": 8},
        },
    ),
    "segmentation": (
        semantic_segmentation.SemanticSegmentationTask,
        {"num_classes": 3, "head": {"level": 3, "num_convs": 1, "num_filters": 8}},
    ),
}


def config_of(kind, **changes):
    cls, model = TASKS[kind]
    config = cls()
    config.override({"model": {"input_size": [64, 64, 3], "backbone": BACKBONE, **model}})
    config.override(changes)
    return config


@pytest.mark.parametrize("kind", TASKS)
def test_a_frozen_backbone_does_not_train_in_any_task(kind):
    model = task_factory.get_task(config_of(kind, freeze_backbone=True)).build_model()
    assert not model.backbone.trainable_weights
    assert model.trainable_weights
    # Nor do the statistics of its batch normalisation.
    norms = [layer for layer in model._flatten_layers() if hasattr(layer, "moving_mean")]
    frozen = {id(w) for w in model.backbone.weights}
    norms = [norm for norm in norms if id(norm.moving_mean) in frozen]
    before = [keras.ops.convert_to_numpy(norm.moving_mean) for norm in norms]
    model(np.random.RandomState(0).normal(size=(2, 64, 64, 3)).astype("float32"), training=True)
    assert len(norms) > 20
    for norm, value in zip(norms, before, strict=True):
        np.testing.assert_array_equal(norm.moving_mean, value)


def test_segmentation_trains_its_backbone_by_default():
    model = task_factory.get_task(config_of("segmentation")).build_model()
    assert model.backbone.trainable_weights


def test_the_builder_gets_what_the_config_says():
    seen = {}

    class Model:
        backbone = keras.layers.Dense(1)

    def build(input_specs, model_config, l2_regularizer):
        seen.update(specs=input_specs, config=model_config, regularizer=l2_regularizer)
        return Model()

    config = config_of("classification", losses={"l2_weight_decay": 0.5})
    model = build_task_model(build, config)
    assert model.backbone.trainable
    assert seen["specs"].shape == (None, 64, 64, 3)
    assert seen["config"] is config.model
    # Half of the squares, times the decay.
    assert float(seen["regularizer"](np.array([2.0], "float32"))) == pytest.approx(1.0)
