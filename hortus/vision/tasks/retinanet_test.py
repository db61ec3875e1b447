import json

import keras
import numpy as np
import pytest
from keras import ops
from PIL import Image

from hortus.core import base_trainer, distribute_utils, exp_factory, task_factory, train_lib
from hortus.engine import collectives
from hortus.testing.engines import run_under_engine
from hortus.vision import experiments  # noqa: F401
from hortus.vision.configs import retinanet as configs
from hortus.vision.tasks import retinanet

SIZE = 64
TINY_MODEL = {
    "num_classes": 3,
    "input_size": [SIZE, SIZE, 3],
    "max_level": 5,
    "anchor": {"num_scales": 1, "aspect_ratios": [1.0], "anchor_size": 3.0},
    "backbone": {"type": "resnet", "resnet": {"model_id": 10, "depth_multiplier": 0.125}},
    "decoder": {"fpn": {"num_filters": 16}},
    "head": {"num_convs": 1, "num_filters": 16},
    "detection_generator": {"max_num_detections": 10},
    "norm_activation": {"norm_momentum": 0.5},
}
COLOURS = {1: (230, 40, 40), 2: (40, 40, 230)}


def tiny_task(**changes):
    config = configs.RetinaNetTask()
    config.override({"model": TINY_MODEL, **changes})
    return retinanet.RetinaNetTask(config)


def scene(random):
    """A grey image with a red square, class 1, and a blue one, class 2."""
    image = np.full((SIZE, SIZE, 3), 128, np.uint8)
    boxes = []
    for number, left in ((1, 4), (2, 34)):
        y, x, side = random.randint(4, 30), left + random.randint(0, 4), random.randint(18, 24)
        boxes.append([y, x, y + side, x + side])
        image[y : y + side, x : x + side] = COLOURS[number]
    return image, np.array(boxes, "float32")


def batch(size=4, seed=0):
    """As `detection_input` makes them, for evaluation."""
    random = np.random.RandomState(seed)
    images, boxes = map(np.stack, zip(*[scene(random) for _ in range(size)], strict=True))
    padding = np.full((size, 2, 4), -1, "float32")
    classes = np.tile(np.array([1, 2, -1, -1], "int32"), (size, 1))
    info = np.array([[SIZE, SIZE], [SIZE, SIZE], [1, 1], [0, 0]], "float32")
    boxes = np.concatenate([boxes, padding], axis=1)
    labels = {
        "boxes": boxes,
        "classes": classes,
        "image_info": np.tile(info, (size, 1, 1)),
        "groundtruths": {
            "source_id": np.arange(size),
            "height": np.full(size, SIZE),
            "width": np.full(size, SIZE),
            "num_detections": np.full(size, 2),
            "boxes": boxes,
            "classes": classes,
        },
    }
    inputs = ((images.astype("float32") - 118) / 58, labels)
    return keras.tree.map_structure(ops.convert_to_tensor, inputs)


def experiment(**task):
    config = exp_factory.get_exp_config("retinanet")
    optimizer = {
        "optimizer": {"type": "adam"},
        "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.01}},
    }
    config.override(
        {
            "task": {"model": TINY_MODEL, **task},
            "trainer": {"optimizer_config": optimizer, "train_steps": 40},
            "runtime": {"distribution_strategy": "one_device"},
        }
    )
    return config


def trainer_for(config, inputs):
    """A trainer that sees one batch again and again, and is evaluated on it."""
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    arrays = keras.tree.map_structure(ops.convert_to_numpy, inputs)
    dataset = tf.data.Dataset.from_tensors(arrays)
    task = retinanet.RetinaNetTask(config.task)
    return base_trainer.Trainer(
        config,
        task,
        task.build_model(),
        task.create_optimizer(config.trainer.optimizer_config),
        train_dataset=dataset.repeat(),
        validation_dataset=dataset,
    )


def test_is_registered():
    task = task_factory.get_task(configs.RetinaNetTask(model=configs.RetinaNet(num_classes=3)))
    assert isinstance(task, retinanet.RetinaNetTask)


def test_learns_to_find():
    config = experiment(allow_image_summary=True, use_approx_instance_metrics=True)
    trainer = trainer_for(config, batch())
    first = trainer.train(1)
    logs = trainer.train(59)
    assert logs["training_loss"] < first["training_loss"] / 3
    parts = logs["cls_loss"] + 50 * logs["box_loss"]
    # Means over steps, in float32.
    np.testing.assert_allclose(logs["model_loss"], parts, rtol=1e-4)
    np.testing.assert_allclose(logs["total_loss"], logs["training_loss"], rtol=1e-5)
    found = trainer.evaluate()
    assert found["AP50"] > 0.9
    # Scores are counted in bins there.
    np.testing.assert_allclose(found["approximate_AP50"], found["AP50"], atol=0.02)
    pictures = [name for name in found if name.startswith("image/")]
    assert sorted(pictures) == [
        *(f"image/detections/{i}" for i in range(4)),
        "image/precision_recall",
    ]
    assert found["image/detections/0"].shape[-1] == 3


def labels_and_outputs(task, inputs, seed=0):
    """Labels of the anchors of a batch, and random outputs of a model."""
    targets = task.label_anchors(inputs[1], (SIZE, SIZE))
    random = np.random.RandomState(seed)
    sides, count = {"3": 8, "4": 4, "5": 2}, len(inputs[0])

    def levels(size):
        values = {k: random.normal(size=(count, side, side, size)) for k, side in sides.items()}
        return {k: ops.convert_to_tensor(v, "float32") for k, v in values.items()}

    return targets, {"cls_outputs": levels(3), "box_outputs": levels(4)}


def test_every_object_has_an_anchor():
    targets = tiny_task().label_anchors(batch()[1], (SIZE, SIZE))
    classes = ops.convert_to_numpy(targets.classes)
    assert classes.shape == (4, 8 * 8 + 4 * 4 + 2 * 2)
    for row in classes:
        assert set(row) == {-1, 1, 2}


def test_images_without_objects():
    inputs = batch(2)
    labels = {**inputs[1], "boxes": ops.full((2, 4, 4), -1.0), "classes": ops.full((2, 4), -1)}
    task = tiny_task()
    targets, outputs = labels_and_outputs(task, (inputs[0], labels))
    losses = task.detection_losses(targets, outputs)
    assert float(losses.boxes) == 0 and np.isfinite(float(losses.total))


def test_loss_weight_and_other_losses():
    task = tiny_task(losses={"loss_weight": 2.0})
    targets, outputs = labels_and_outputs(task, batch())
    total = task.detection_losses(targets, outputs).total
    loss = task.build_losses(targets, outputs, aux_losses=[ops.convert_to_tensor(3.0)])
    np.testing.assert_allclose(float(loss), 2 * float(total) + 3, rtol=1e-6)


def test_replicas_divide_by_what_all_of_them_found(monkeypatch):
    """The mean of the losses of two halves is the loss of the whole, however objects lie."""
    whole = batch(4)
    none = {"boxes": ops.full((2, 4, 4), -1.0), "classes": ops.full((2, 4), -1)}
    empty = (whole[0][2:], {**{k: v[2:] for k, v in whole[1].items() if k in none}, **none})
    full = (whole[0][:2], {k: whole[1][k][:2] for k in none})
    joined = {k: ops.concatenate([full[1][k], ops.cast(none[k], full[1][k].dtype)]) for k in none}
    seen = []

    class Task(retinanet.RetinaNetTask):
        def detection_losses(self, labels, model_outputs, normalizer=None):
            seen.append(super().detection_losses(labels, model_outputs, normalizer))
            raise StopIteration

    task = Task(tiny_task().task_config)
    outputs = labels_and_outputs(task, (whole[0], joined))[1]

    def loss(inputs, rows, replicas, found_elsewhere):
        monkeypatch.setattr(collectives, "separate_replicas", lambda: replicas)
        monkeypatch.setattr(collectives, "sum_over_replicas", lambda x: x + found_elsewhere)
        part = keras.tree.map_structure(lambda x: x[rows], outputs)

        class Model:
            trainable_variables = ()
            losses = ()

            def __call__(self, images, training):
                return part

        with pytest.raises(StopIteration):
            task.train_step(inputs, Model(), None)
        return float(seen[-1].total)

    found = float(ops.sum(task.label_anchors(full[1], (SIZE, SIZE)).box_weights))
    halves = [loss(full, slice(2), 2, 0.0), loss(empty, slice(2, 4), 2, found)]
    expected = loss((whole[0], joined), slice(4), 1, 0.0)
    # float32 sums in another order
    np.testing.assert_allclose(np.mean(halves), expected, rtol=1e-5)
    assert abs(halves[0] - halves[1]) > 1e-3


def test_attributes_are_learnt():
    heads = [
        {"name": "age", "type": "regression", "size": 1},
        {"name": "kind", "type": "classification", "size": 2},
    ]
    task = tiny_task(model={**TINY_MODEL, "head": {**TINY_MODEL["head"], "attribute_heads": heads}})
    images, labels = batch()
    labels["attributes"] = {"age": ops.ones((4, 4, 1)), "kind": ops.ones((4, 4, 1))}
    targets, outputs = labels_and_outputs(task, (images, labels))
    outputs["attribute_outputs"] = {
        "age": {k: v[..., :1] for k, v in outputs["box_outputs"].items()},
        "kind": {k: v[..., :2] for k, v in outputs["box_outputs"].items()},
    }
    losses = task.detection_losses(targets, outputs)
    assert set(losses.attributes) == {"age", "kind"}
    total = losses.classes + 50 * losses.boxes + sum(losses.attributes.values())
    np.testing.assert_allclose(float(losses.total), float(total), rtol=1e-6)
    names = [metric.name for metric in task.build_metrics()]
    assert names[-2:] == ["age_loss", "kind_loss"]


def test_frozen_backbone_and_weight_decay_on_tensorflow():
    plain = tiny_task().build_model()
    model = tiny_task(freeze_backbone=True, losses={"l2_weight_decay": 0.5}).build_model()
    backbone = {id(w) for w in model.backbone.weights}
    assert not [w for w in model.trainable_weights if id(w) in backbone]
    assert len(model.trainable_weights) < len(plain.trainable_weights)
    assert len(model.losses) > 5 and not plain.losses


def test_unavailable_metrics():
    with pytest.raises(ValueError, match="use_wod_metrics"):
        tiny_task(use_wod_metrics=True)


EXPERIMENTS = {
    name: exp_factory.get_exp_config(name).task.model.backbone.type
    for name in exp_factory.exp_names()
    if name.startswith("retinanet")
}
SMALL = {
    "resnet": {"model_id": 10, "depth_multiplier": 0.125},
    "spinenet": {"model_id": "49S"},
    "spinenet_mobile": {"model_id": "49XS"},
}


@pytest.mark.parametrize(
    "name",
    [
        # The many layers of SpineNet take long to trace.
        pytest.param(name, marks=[pytest.mark.slow] if kind.startswith("spinenet") else [])
        for name, kind in EXPERIMENTS.items()
    ],
)
def test_experiments_take_a_step_on_tensorflow(name):
    config = exp_factory.get_exp_config(name)
    model = config.task.model
    kind = model.backbone.type
    config.override(
        {
            "task": {
                "init_checkpoint": None,
                "annotation_file": None,
                "model": {
                    "num_classes": 3,
                    "input_size": [128, 128, 3],
                    "backbone": {kind: SMALL[kind]},
                    "head": {"num_convs": 1, "num_filters": 8},
                    "decoder": {"fpn": {"num_filters": 8}} if model.decoder.type == "fpn" else {},
                },
            },
            "runtime": {"distribution_strategy": "one_device"},
        }
    )
    if name == "retinanet":  # says nothing of how to train
        config.override({"trainer": {"optimizer_config": experiment().trainer.optimizer_config}})
    images, labels = batch(2)
    images = ops.pad(images, ((0, 0), (0, 64), (0, 64), (0, 0)))
    trainer = trainer_for(config, (images, labels))
    logs = trainer.train(1)
    assert np.isfinite(logs["training_loss"]) and logs["box_loss"] > 0


@pytest.fixture
def coco(tmp_path):
    """Three images with a COCO file."""
    random = np.random.RandomState(0)
    images, annotations = [], []
    (tmp_path / "images").mkdir()
    for number in range(3):
        image, boxes = scene(random)
        Image.fromarray(image).save(tmp_path / "images" / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png", "height": SIZE, "width": SIZE})
        for category, (y0, x0, y1, x1) in enumerate(boxes.tolist(), start=1):
            box = [x0, y0, x1 - x0, y1 - y0]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": category,
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": 0,
                }
            )
    categories = [{"id": 1, "name": "red"}, {"id": 2, "name": "blue"}]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (tmp_path / "data.json").write_text(json.dumps(content))
    return str(tmp_path / "data.json")


def test_from_files_to_average_precision_on_tensorflow(coco, tmp_path, caplog):
    data = {"input_path": coco, "file_type": "coco", "global_batch_size": 2, "dtype": "float32"}
    config = experiment(
        train_data={**data, "shuffle_buffer_size": 3, "parser": {"aug_rand_hflip": True}},
        validation_data={**data, "drop_remainder": False},
        per_category_metrics=True,
    )
    config.override(
        {
            "trainer": {
                "train_steps": 2,
                "steps_per_loop": 2,
                "summary_interval": 2,
                "checkpoint_interval": 2,
                "validation_interval": 2,
                "validation_steps": -1,
            }
        }
    )
    task = retinanet.RetinaNetTask(config.task, logging_dir=str(tmp_path / "run"))
    with caplog.at_level("INFO", logger="absl"):
        _, logs = train_lib.run_experiment(
            distribute_utils.get_distribution_strategy("one_device"),
            task,
            "train_and_eval",
            config,
            str(tmp_path / "run"),
            run_post_eval=True,
        )
    assert task.class_names == ("red", "blue")
    assert {"AP", "AP50", "AP50/red", "AP/blue", "validation_loss"} <= set(logs)
    assert "Average precision by class" in caplog.text
    assert any("AP50" in note and "blue" in note for note in task.notes())
    # Another start finds the names in the folder of the run.
    assert retinanet.RetinaNetTask(config.task, str(tmp_path / "run")).class_names == (
        "red",
        "blue",
    )


def test_on_jax():
    run_under_engine("jax", __file__, select="not on_tensorflow")
