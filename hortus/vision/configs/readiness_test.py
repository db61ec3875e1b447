"""What `validate_for_run` finds, which is what a run would stumble over."""

import json

import pytest

from hortus import hyperparams
from hortus.core import exp_factory
from hortus.vision import experiments

assert experiments  # registers the experiments

DATA = {"global_batch_size": 8, "input_path": "a*"}
OPTIMIZER = {"optimizer": {"type": "sgd"}, "learning_rate": {"type": "constant"}}
COMPLETE = {
    "task": {
        "model": {"num_classes": 4, "input_size": [128, 128, 3]},
        "train_data": DATA,
        "validation_data": DATA,
    },
    "trainer": {"optimizer_config": OPTIMIZER},
}
GENERAL = ["image_classification", "retinanet", "semantic_segmentation"]


def complete(experiment="image_classification", *changes):
    config = exp_factory.get_exp_config(experiment)
    config.override(COMPLETE)
    for change in changes:
        config.override(change)
    return config


def complaint(config, mode="train_and_eval"):
    with pytest.raises(hyperparams.ConfigError) as caught:
        config.validate_for_run(mode)
    return str(caught.value)


@pytest.mark.parametrize("name", GENERAL)
def test_a_general_experiment_says_all_that_it_lacks(name):
    config = exp_factory.get_exp_config(name)
    config.validate()  # it can be shown and changed
    message = complaint(config)
    for path in (
        "task.model.num_classes: must be set",
        "task.model.input_size: must be set",
        "task.train_data.global_batch_size: must be set",
        "task.train_data.input_path: must name the data",
        "task.validation_data.input_path: must name the data",
        "trainer.optimizer_config.optimizer.type: must be set, to one of: sgd,",
        "trainer.optimizer_config.learning_rate.type: must be set, to one of: constant,",
    ):
        assert path in message


@pytest.mark.parametrize("name", GENERAL)
def test_a_complete_one_lacks_nothing(name):
    complete(name).validate_for_run()


@pytest.mark.parametrize("name", exp_factory.exp_names())
def test_every_other_experiment_is_complete(name):
    config = exp_factory.get_exp_config(name)
    if name.startswith("video_classification_kinetics"):  # whose data everybody stores elsewhere
        config.override("task.train_data.input_path=a*,task.validation_data.input_path=b*")
    if name not in (*GENERAL, "video_classification"):
        config.validate_for_run()


def test_only_what_the_mode_needs_is_asked_for():
    config = complete()
    config.task.validation_data.input_path = ""
    config.validate_for_run("train")
    assert "task.validation_data.input_path" in complaint(config, "train_and_eval")
    config = complete()
    config.task.train_data.global_batch_size = 0
    config.trainer.optimizer_config.optimizer.type = None
    config.validate_for_run("eval")
    assert "task.train_data.global_batch_size" in complaint(config, "train")


SECTIONS = [
    "task",
    "task.model",
    "task.model.backbone",
    "task.model.norm_activation",
    "task.train_data",
    "task.validation_data",
    "task.losses",
    "task.evaluation",
    "trainer",
    "trainer.optimizer_config",
    "trainer.optimizer_config.optimizer",
    "trainer.optimizer_config.learning_rate",
    "trainer.optimizer_config.warmup",
    "runtime",
]


@pytest.mark.parametrize("path", SECTIONS)
def test_a_section_that_a_run_needs_is_not_null(path):
    assert f"{path} (override): must not be null" in complaint(
        complete("image_classification", f"{path}=null")
    )


@pytest.mark.parametrize(
    "path", ["trainer.early_stopping", "trainer.optimizer_config.ema", "task.train_data.aug_type"]
)
def test_a_section_that_is_optional_can_be_null(path):
    complete("image_classification", f"{path}=null").validate_for_run()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "task.model.backbone.type=null",
            "task.model.backbone.type (override): must be set, to one of: resnet,",
        ),
        ("task.model.backbone.resnet=null", "task.model.backbone.resnet (override): must not be"),
        ("task.model.backbone.resnet.model_id=11", "must be one of 10, 18, 26, 34, 50"),
        ("task.model.backbone.resnet.stem_type=v9", "must be one of v0, v1; got 'v9'"),
        ("task.model.num_classes=0", "task.model.num_classes (override): must be set"),
        (
            "task.model.input_size=[32, 32, 1]",
            "must end in the 3 channels of the images, got [32, 32, 1]",
        ),
        ("task.train_data.dtype=float8", "must be one of float32, bfloat16, float16; got 'float8'"),
        ("task.train_data.tf_resize_method=cubic", "must be one of bilinear, bicubic"),
        (
            "trainer.gradient_accumulation_steps=3",
            "(of task.train_data.global_batch_size, 8) into equal parts, got 3",
        ),
        ("trainer.early_stopping.patience=2", "trainer.early_stopping.metric: must name"),
        (
            "trainer.optimizer_config.learning_rate={type: cosine}",
            "trainer.optimizer_config.learning_rate.cosine.decay_steps: must be set",
        ),
        (
            "trainer.optimizer_config.warmup.type=linear",
            "trainer.optimizer_config.warmup.linear.warmup_steps: must be set",
        ),
        (
            "trainer.optimizer_config={optimizer: {sgd: null}}",
            "trainer.optimizer_config.optimizer.sgd (override): must not be null",
        ),
    ],
)
def test_what_would_end_training_is_found_before(change, message):
    assert message in complaint(complete("image_classification", change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("task.model.max_level=8", "sides that are multiples of 256, as the coarsest level"),
        ("task.model.detection_generator.apply_nms=false", "must be true for a run that evaluates"),
    ],
)
def test_what_would_end_the_run_of_a_detector_is_found_before(change, message):
    assert message in complaint(complete("retinanet", change))


def test_channels_follow_the_data():
    gray = {"task": {"model": {"input_size": [128, 128, 1]}}}
    config = complete("retinanet", gray)
    assert "the 1 channels" not in complaint(config)
    config.override("task.train_data.parser.num_channels=1")
    config.validate_for_run()
    config = complete("semantic_segmentation", {"task": {"model": {"input_size": [64, 64, 4]}}})
    depth = {"feature_name": "depth", "num_channels": 1, "mean": [0], "stddev": [1]}
    assert "the 3 channels of train_data's features" in complaint(config)
    config.override(json.dumps({"task": {"train_data": {"additional_dense_features": [depth]}}}))
    config.validate_for_run()
