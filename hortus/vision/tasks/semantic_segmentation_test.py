"""The task of segmentation: steps, evaluation at both sizes, pictures; all experiments."""

import copy

import keras
import numpy as np
import pytest
from keras import ops

from hortus.core import exp_factory
from hortus.testing import run_under_engine
from hortus.vision import experiments  # noqa: F401
from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.losses.segmentation import SegmentationLoss
from hortus.vision.tasks.semantic_segmentation import Evaluation, SemanticSegmentationTask

EXPERIMENTS = [
    "mnv2_deeplabv3_cityscapes",
    "mnv2_deeplabv3_pascal",
    "mnv2_deeplabv3plus_cityscapes",
    "seg_deeplabv3_pascal",
    "seg_deeplabv3plus_cityscapes",
    "seg_deeplabv3plus_pascal",
    "seg_resnetfpn_pascal",
]
SMALLER = {
    "mobilenet": {"mobilenet": {"filter_size_scale": 0.25}},
    # Its smallest has 50 layers already.
    "dilated_resnet": {"dilated_resnet": {"model_id": 50}},
    "resnet": {"resnet": {"model_id": 10, "depth_multiplier": 0.25}},
}


def tiny_task(**changes):
    config = configs.SemanticSegmentationTask()
    config.override(
        {
            "model": {
                "num_classes": 3,
                "input_size": [None, None, 3],
                "backbone": {
                    "type": "resnet",
                    "resnet": {"model_id": 10, "depth_multiplier": 0.125},
                },
                "decoder": {"type": "aspp", "aspp": {"level": 5, "num_filters": 8}},
                "head": {"level": 5, "num_convs": 0},
            },
            "losses": {"l2_weight_decay": 1e-4},
        }
    )
    config.override(changes)
    return SemanticSegmentationTask(config)


def batch(size=(32, 48), count=2, num_classes=3, label_size=None):
    random = np.random.RandomState(0)
    masks = random.randint(0, num_classes, (count, *(label_size or size), 1)).astype("int32")
    masks[:, 0] = 255
    info = np.array([[size, size, [1, 1], [0, 0]]] * count, "float32")
    if label_size:
        info = np.array(
            [[label_size, size, np.divide(size, label_size), [0, 0]]] * count, "float32"
        )
    images = random.normal(size=(count, *size, 3)).astype("float32")
    return images, {"masks": masks, "valid_masks": masks != 255, "image_info": info}


def take_step(task, model, inputs):
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    metrics = task.build_metrics(training=True)
    logs = task.train_step(inputs, model, optimizer, metrics)
    return float(logs["loss"]), {metric.name: float(metric.result()) for metric in metrics}


def evaluate(task, model, *batches):
    state = None
    metrics = task.build_metrics(training=False)
    for each in batches:
        logs = task.validation_step(each, model, metrics)
        logs = {key: ops.convert_to_numpy(value) for key, value in logs.items()}
        state = task.aggregate_logs(state, logs)
    return task.reduce_aggregated_logs(state), {each.name: float(each.result()) for each in metrics}


def test_a_train_step_learns():
    task = tiny_task()
    model = task.build_model()
    before = [ops.convert_to_numpy(w).copy() for w in model.trainable_variables]
    loss, metrics = take_step(task, model, batch())
    assert np.isfinite(loss) and 0 <= metrics["mean_iou"] <= 1
    after = [ops.convert_to_numpy(w) for w in model.trainable_variables]
    assert all((a != b).any() for a, b in zip(after, before, strict=True))


def test_steps_of_a_model_of_ones_own():
    data = {"resize_eval_groundtruth": False, "groundtruth_padded_size": [16, 24]}
    task = tiny_task(validation_data=data)
    images = keras.Input((None, None, 3))
    model = keras.Model(images, {"logits": keras.layers.Conv2D(3, 4, strides=4)(images)})
    inputs = batch((8, 12))
    losses = [take_step(task, model, inputs)[0] for _ in range(2)]
    assert losses[1] < losses[0]
    logs, _ = evaluate(task, model, batch((8, 12), label_size=(16, 24)))
    assert 0 <= logs["mean_iou"] <= 1 and logs["image/example_0"].ndim == 4


def test_the_loss_has_its_parts():
    task = tiny_task(losses={"loss_weight": 2.0}, model={"mask_scoring_head": SCORING})
    _, labels = batch()
    outputs = {
        "logits": np.random.RandomState(1).normal(size=(2, 4, 6, 3)).astype("float32"),
        "mask_scores": np.full((2, 3), 0.5, "float32"),
    }
    pixels = float(SegmentationLoss()(outputs["logits"], labels["masks"]))
    whole = float(task.build_losses(labels, outputs, aux_losses=[ops.convert_to_tensor(7.0)]))
    scoring = (whole - 7.0) / 2.0 - pixels
    assert 0 < scoring < 1
    task.task_config.losses.mask_scoring_weight = 0.0
    without = float(task.build_losses(labels, outputs))
    # float32 sums
    np.testing.assert_allclose(without, 2.0 * pixels, rtol=1e-5)


SCORING = {"fc_input_size": [2, 2], "num_convs": 0, "num_fcs": 1, "fc_dims": 4}


def test_mattes_are_learnt_as_opacities():
    task = tiny_task(losses={"gt_is_matting_map": True}, model={"num_classes": 2})
    labels = {"masks": np.array([0, 255, 51, 204]).reshape(1, 2, 2, 1)}
    logits = np.zeros((1, 2, 2, 2), "float32")
    logits[..., 1] = 2.0
    loss = float(task.build_losses(labels, {"logits": logits}))
    log_p = logits - np.log(1 + np.exp(2.0))
    expected = -np.mean(
        [log_p[0, 0, 0, 1] * x + log_p[0, 0, 0, 0] * (1 - x) for x in (0, 1, 0.2, 0.8)]
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_evaluation_counts_all_batches():
    task = tiny_task(model={"mask_scoring_head": SCORING})
    model = task.build_model()
    first, second = batch(), batch((40, 24), count=1)
    logs, metrics = evaluate(task, model, first, second)
    counts = np.zeros((3, 3))
    for images, labels in (first, second):
        logits = ops.image.resize(model(images, training=False)["logits"], images.shape[1:3])
        predicted = ops.convert_to_numpy(ops.argmax(logits, axis=-1))
        valid = labels["valid_masks"][..., 0]
        np.add.at(counts, (labels["masks"][..., 0][valid], predicted[valid]), 1)
    both = np.diag(counts)
    expected = both / (counts.sum(0) + counts.sum(1) - both)
    np.testing.assert_allclose([logs[f"iou/{i}"] for i in range(3)], expected)
    np.testing.assert_allclose(logs["mean_iou"], expected.mean())
    assert metrics["mask_scores_mse"] >= 0


def test_evaluation_at_the_original_size():
    data = {"resize_eval_groundtruth": False, "groundtruth_padded_size": [64, 96]}
    task = tiny_task(validation_data=data)
    model = task.build_model()
    logs, _ = evaluate(task, model, batch((32, 48), label_size=(64, 96)))
    assert 0 <= logs["mean_iou"] <= 1
    # The image is drawn at the size of the masks.
    assert logs["image/example_0"].ndim == 4


def test_pictures_and_table():
    task = tiny_task()
    logs, _ = evaluate(task, task.build_model(), *[batch((32, 300), count=5)] * 2)
    pictures = [key for key in logs if key.startswith("image/example")]
    assert len(pictures) == 8
    (note,) = task.notes()
    assert len(note.splitlines()) == 5 and "100.0%" not in note
    for key in (*pictures, "image/confusion_matrix"):
        assert logs[key].dtype == np.uint8 and logs[key].shape[0] == 1
    quiet = tiny_task(allow_image_summary=False, evaluation={"report_per_class_iou": False})
    logs, _ = evaluate(quiet, quiet.build_model(), batch())
    assert list(logs) == ["mean_iou"] and not list(quiet.notes())


def test_classes_of_other_data_are_an_error():
    task = tiny_task()
    task._classes.take(("a", "b"), task.task_config.train_data)
    assert task.class_names == ("a", "b", "2")
    with pytest.raises(ValueError, match="are not those that the model has learnt"):
        task._classes.take(("a", "c"), task.task_config.validation_data)


def test_pictures_come_from_all_over_the_data():
    evaluation = Evaluation(np.zeros((2, 2), int))
    for begin in range(0, 1000, 10):
        evaluation.add({"image": np.arange(begin, begin + 10)})
    chosen = [int(parts["image"]) for parts in evaluation.chosen()]
    assert len(evaluation.pictures) <= 64 and len(chosen) == 8
    assert chosen[0] == 0 and 800 < chosen[-1] < 1000
    assert max(np.diff(chosen)) < 150


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_build_and_take_a_step_on_tensorflow(name):
    config = copy.deepcopy(exp_factory.get_exp_config(name).task)
    kind = config.model.backbone.type
    config.override({"model": {"backbone": SMALLER[kind]}, "init_checkpoint": None})
    if kind == "resnet":
        config.override(
            {"model": {"input_size": [64, 64, 3], "decoder": {"fpn": {"num_filters": 16}}}}
        )
    else:
        config.override({"model": {"decoder": {"aspp": {"num_filters": 16}}}})
    config.override({"model": {"head": {"num_filters": 16}}})
    task = SemanticSegmentationTask(config)
    loss, metrics = take_step(task, task.build_model(), batch((64, 64), num_classes=5))
    # About the logarithm of the number of classes, and the decay of the weights.
    assert 1.0 < loss < 30.0 and "mean_iou" in metrics


def test_on_jax():
    run_under_engine("jax", __file__, select="ones_own")
