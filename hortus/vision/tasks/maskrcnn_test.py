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
from hortus.vision.configs import maskrcnn as configs
from hortus.vision.evaluation import coco_masks
from hortus.vision.tasks import maskrcnn

SIZE, SIDE = 64, 16
TINY_MODEL = {
    "num_classes": 3,
    "input_size": [SIZE, SIZE, 3],
    "min_level": 3,
    "max_level": 5,
    "anchor": {"aspect_ratios": [1.0], "anchor_size": 3.0},
    "backbone": {"type": "resnet", "resnet": {"model_id": 10, "depth_multiplier": 0.125}},
    "decoder": {"fpn": {"num_filters": 16}},
    "rpn_head": {"num_filters": 16},
    "detection_head": {"num_convs": 0, "fc_dims": 32},
    "mask_head": {"num_convs": 1, "num_filters": 16},
    "roi_generator": {
        "pre_nms_top_k": 60,
        "num_proposals": 40,
        "test_pre_nms_top_k": 60,
        "test_num_proposals": 40,
    },
    "roi_sampler": {"num_sampled_rois": 24, "foreground_fraction": 0.5},
    "roi_aligner": {"crop_size": 4},
    "mask_roi_aligner": {"crop_size": 7},
    "mask_sampler": {"num_sampled_masks": 12},
    "detection_generator": {"max_num_detections": 10},
    "norm_activation": {"norm_momentum": 0.5},
}
COLOURS = {1: (230, 40, 40), 2: (40, 40, 230)}
NO_MASKS = {
    "include_mask": False,
    "mask_head": None,
    "mask_sampler": None,
    "mask_roi_aligner": None,
}


def tiny_task(**changes):
    config = configs.MaskRCNNTask()
    config.override({"model": TINY_MODEL, **changes})
    return maskrcnn.MaskRCNNTask(config)


def scene(random):
    """A grey image with a red disc, class 1, and a blue square, class 2; boxes and masks."""
    image = np.full((SIZE, SIZE, 3), 128, np.uint8)
    boxes, masks = [], []
    rows, columns = np.mgrid[:SIZE, :SIZE] + 0.5
    for number, left in ((1, 4), (2, 34)):
        y, x, side = random.randint(4, 30), left + random.randint(0, 4), random.randint(18, 24)
        mask = np.zeros((SIZE, SIZE), bool)
        mask[y : y + side, x : x + side] = True
        if number == 1:
            half = side / 2
            mask &= (rows - y - half) ** 2 + (columns - x - half) ** 2 < half**2
        image[mask] = COLOURS[number]
        boxes.append([y, x, y + side, x + side])
        masks.append(mask)
    return image, np.array(boxes, "float32"), np.array(masks)


def crops(boxes, masks):
    """Masks as the batch has them: looked up in the middles of the cells of their boxes."""
    found = []
    for (y0, x0, y1, x1), mask in zip(boxes, masks, strict=True):
        cells = (np.arange(SIDE) + 0.5) / SIDE
        rows, columns = (y0 + cells * (y1 - y0)).astype(int), (x0 + cells * (x1 - x0)).astype(int)
        found.append(mask[np.ix_(rows, columns)])
    return np.array(found, "uint8")


def batch(size=4, seed=0):
    """As `detection_input` makes them, for evaluation."""
    random = np.random.RandomState(seed)
    scenes = [scene(random) for _ in range(size)]
    images, boxes, masks = (np.stack(parts) for parts in zip(*scenes, strict=True))
    small = np.stack([crops(b, m) for b, m in zip(boxes, masks, strict=True)])
    texts = [[rle["counts"] for rle in coco_masks.encode(each)] for each in masks]
    codes = np.zeros((size, 512), "uint8")
    for row, each in zip(codes, texts, strict=True):
        characters = np.frombuffer(b"".join(each), "uint8")
        row[: len(characters)] = characters
    lengths = np.array([[*map(len, each), 0, 0] for each in texts], "int32")
    padding = np.full((size, 2, 4), -1, "float32")
    classes = np.tile(np.array([1, 2, -1, -1], "int32"), (size, 1))
    info = np.array([[SIZE, SIZE], [SIZE, SIZE], [1, 1], [0, 0]], "float32")
    boxes = np.concatenate([boxes, padding], axis=1)
    labels = {
        "boxes": boxes,
        "classes": classes,
        "is_crowd": np.zeros((size, 4), bool),
        "masks": np.concatenate([small, np.zeros_like(small)], axis=1),
        "image_info": np.tile(info, (size, 1, 1)),
        "groundtruths": {
            "source_id": np.arange(size),
            "height": np.full(size, SIZE),
            "width": np.full(size, SIZE),
            "num_detections": np.full(size, 2),
            "boxes": boxes,
            "classes": classes,
            "mask_codes": codes,
            "mask_lengths": lengths,
        },
    }
    inputs = ((images.astype("float32") - 118) / 58, labels)
    return keras.tree.map_structure(ops.convert_to_tensor, inputs)


def experiment(**task):
    config = exp_factory.get_exp_config("maskrcnn_resnetfpn_coco")
    optimizer = {
        "optimizer": {"type": "adam"},
        "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.005}},
        "warmup": {"type": None},
    }
    config.override(
        {
            "task": {
                "init_checkpoint": None,
                "annotation_file": None,
                "losses": {"l2_weight_decay": 0.0},
                "model": TINY_MODEL,
                **task,
            },
            "trainer": {"optimizer_config": optimizer, "train_steps": 40},
            "runtime": {
                "distribution_strategy": "one_device",
                "mixed_precision_dtype": None,
                "enable_xla": False,
            },
        }
    )
    return config


def trainer_for(config, inputs):
    """A trainer that sees one batch again and again, and is evaluated on it."""
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    arrays = keras.tree.map_structure(ops.convert_to_numpy, inputs)
    dataset = tf.data.Dataset.from_tensors(arrays)
    task = maskrcnn.MaskRCNNTask(config.task)
    return base_trainer.Trainer(
        config,
        task,
        task.build_model(),
        task.create_optimizer(config.trainer.optimizer_config),
        train_dataset=dataset.repeat(),
        validation_dataset=dataset,
    )


def test_is_registered():
    task = task_factory.get_task(configs.MaskRCNNTask(model=configs.MaskRCNN(num_classes=3)))
    assert isinstance(task, maskrcnn.MaskRCNNTask)


def test_learns_to_find_and_to_draw():
    config = experiment(allow_image_summary=True, use_approx_instance_metrics=True)
    trainer = trainer_for(config, batch())
    first = trainer.train(1)
    logs = trainer.train(119)
    assert logs["training_loss"] < first["training_loss"] / 2
    names = ("rpn_score", "rpn_box", "frcnn_cls", "frcnn_box", "mask")
    parts = sum(logs[f"{name}_loss"] for name in names)
    # Means over steps, in float32.
    np.testing.assert_allclose(logs["model_loss"], parts, rtol=1e-4)
    found = trainer.evaluate()
    assert found["AP50"] > 0.9 and found["mask_AP50"] > 0.9 and found["mask_AP"] > 0.5
    assert "of masks" in "".join(trainer.task.notes())
    pictures = [name for name in found if name.startswith("image/")]
    assert sorted(pictures) == [
        *(f"image/detections/{i}" for i in range(4)),
        "image/precision_recall",
    ]
    assert found["image/detections/0"].shape[-1] == 3


def test_truth_as_predictions_is_perfect():
    task, (_, labels) = tiny_task(), batch()
    arrays = keras.tree.map_structure(ops.convert_to_numpy, labels)
    predictions = {
        "detection_boxes": arrays["boxes"],
        "detection_scores": np.tile([0.9, 0.8, 0.0, 0.0], (4, 1)),
        "detection_classes": arrays["classes"],
        "num_detections": np.full(4, 2),
        # The square fills its cells; the disc's edge needs them small.
        "detection_masks": arrays["masks"].astype("float32"),
        "source_id": arrays["groundtruths"]["source_id"],
        "image_info": arrays["image_info"],
    }
    logs = {"predictions": predictions, "groundtruths": arrays["groundtruths"]}
    found = task.reduce_aggregated_logs(task.aggregate_logs(None, logs))
    assert found["AP"] == 1.0 and found["mask_AP50"] == found["mask_AP75"] == 1.0
    assert found["mask_AP"] > 0.9


def outputs_of(task, inputs, seed=0):
    """Outputs of a new model in training."""
    keras.utils.set_random_seed(seed)
    model, (images, labels) = task.build_model(), inputs
    truth = {f"gt_{name}": labels[name] for name in ("boxes", "classes", "masks")}
    return model(images, training=True, **truth)


def test_anchors_are_labelled_by_level():
    task, (_, labels) = tiny_task(), batch()
    targets = task.label_anchors(labels, (SIZE, SIZE), seed=1)
    scores = {k: ops.convert_to_numpy(v) for k, v in targets["scores"].items()}
    assert {k: v.shape for k, v in scores.items()} == {
        "3": (4, 8, 8, 1),
        "4": (4, 4, 4, 1),
        "5": (4, 2, 2, 1),
    }
    assert targets["boxes"]["4"].shape == (4, 4, 4, 4)
    for image in range(4):
        chosen = np.concatenate([x[image].ravel() for x in scores.values()])
        assert (chosen == 1).sum() >= 2 and (chosen == 0).sum() > 2


def test_crowds_are_neither_object_nor_background_on_tensorflow():
    task = tiny_task(train_data={"parser": {"skip_crowd_during_training": False}})
    _, labels = batch()
    plain = tiny_task().label_anchors(labels, (SIZE, SIZE), seed=1)["scores"]["3"]
    crowds = {**labels, "is_crowd": ops.convert_to_tensor(np.array([[True, False] * 2] * 4))}
    found = task.label_anchors(crowds, (SIZE, SIZE), seed=1)["scores"]["3"]
    count = [(ops.convert_to_numpy(x) == 1).sum() for x in (plain, found)]
    assert 0 < count[1] < count[0]


def test_images_without_objects_on_tensorflow():
    task, (images, labels) = tiny_task(), batch(2)
    none = {"boxes": ops.full((2, 4, 4), -1.0), "classes": ops.full((2, 4), -1)}
    labels = {**labels, **none}
    targets = task.label_anchors(labels, (SIZE, SIZE), seed=1)
    losses = task.detection_losses(targets, outputs_of(task, (images, labels)))
    assert float(losses.rpn_box) == float(losses.frcnn_box) == float(losses.mask) == 0
    assert np.isfinite(float(losses.total)) and float(losses.total) > 0


def test_loss_weights_and_other_losses_on_tensorflow():
    weights = {"loss_weight": 2.0, "mask_weight": 3.0, "rpn_box_weight": 0.0}
    task, inputs = tiny_task(losses=weights), batch()
    targets = task.label_anchors(inputs[1], (SIZE, SIZE), seed=1)
    outputs = outputs_of(task, inputs)
    losses = task.detection_losses(targets, outputs)
    parts = losses.rpn_score + losses.frcnn_class + losses.frcnn_box + 3.0 * losses.mask
    np.testing.assert_allclose(float(losses.total), float(parts), rtol=1e-6)
    loss = task.build_losses(targets, outputs, aux_losses=[ops.convert_to_tensor(3.0)])
    np.testing.assert_allclose(float(loss), 2 * float(parts) + 3, rtol=1e-6)


def test_masks_of_some_classes_only_on_tensorflow():
    inputs = batch()
    losses = []
    for allowed in (None, [1], [1, 2], []):
        task = tiny_task(allowed_mask_class_ids=allowed)
        targets = task.label_anchors(inputs[1], (SIZE, SIZE), seed=1)
        losses.append(float(task.detection_losses(targets, outputs_of(task, inputs)).mask))
    assert losses[0] == losses[2] != losses[1] and losses[3] == 0.0


def test_replicas_divide_by_what_all_of_them_found_on_tensorflow(monkeypatch):
    """The mean of the losses of two halves is the loss of the whole, however objects lie."""
    task, inputs = tiny_task(), batch(4)
    labels = {**inputs[1], "boxes": ops.convert_to_numpy(inputs[1]["boxes"]).copy()}
    labels["boxes"][2:] = -1.0  # no objects in the second half
    targets = task.label_anchors(labels, (SIZE, SIZE), seed=1)
    outputs = outputs_of(task, (inputs[0], labels))
    whole = task.detection_losses(targets, outputs)
    counts = []
    task.detection_losses(targets, outputs, lambda count: counts.append(float(count)) or count)
    halves = []
    for rows in (slice(2), slice(2, 4)):
        of_all = iter(counts)
        monkeypatch.setattr(collectives, "separate_replicas", lambda: 2)
        monkeypatch.setattr(collectives, "sum_over_replicas", lambda _, all_=of_all: next(all_))
        part = keras.tree.map_structure(lambda x, rows=rows: x[rows], (targets, outputs))
        halves.append(task.detection_losses(*part, maskrcnn._over_replicas))
    for name in whole._fields:
        mean = np.mean([float(getattr(half, name)) for half in halves])
        # 0.01 more in denominators of 100 and more
        np.testing.assert_allclose(mean, float(getattr(whole, name)), rtol=2e-3, err_msg=name)
    assert abs(float(halves[0].mask) - float(halves[1].mask)) > 0.1


def test_unavailable_metrics():
    with pytest.raises(ValueError, match="use_wod_metrics"):
        tiny_task(use_wod_metrics=True)


def test_frozen_backbone_on_tensorflow():
    model = tiny_task(freeze_backbone=True, losses={"l2_weight_decay": 1e-4}).build_model()
    frozen = {id(w) for w in model.backbone.weights}
    assert not [w for w in model.trainable_weights if id(w) in frozen]
    assert len(model.losses) > 5


EXPERIMENTS = {
    name: exp_factory.get_exp_config(name).task.model.backbone.type
    for name in exp_factory.exp_names()
    if "rcnn" in name
}
SMALL = {
    "resnet": {"model_id": 10, "depth_multiplier": 0.125},
    "spinenet": {"model_id": "49S"},
    "mobilenet": {"model_id": "MobileNetV3Small"},
}


@pytest.mark.parametrize(
    "name",
    [
        # The many layers of the others take long to trace.
        pytest.param(name, marks=[pytest.mark.slow] if kind != "resnet" else [])
        for name, kind in EXPERIMENTS.items()
    ],
)
def test_experiments_take_a_step_on_tensorflow(name):
    config = exp_factory.get_exp_config(name)
    model = config.task.model
    kind = model.backbone.type
    small = {"num_filters": 8, "num_convs": 1}
    parts = ("roi_generator", "roi_aligner", "mask_roi_aligner", "mask_sampler")
    changes = {part: TINY_MODEL[part] for part in parts if getattr(model, part) is not None}
    config.override(
        {
            "task": {
                "init_checkpoint": None,
                "annotation_file": None,
                "model": {
                    **changes,
                    "num_classes": 3,
                    "input_size": [128, 128, 3],
                    "backbone": {kind: SMALL[kind]},
                    "rpn_head": small,
                    "detection_head": {**small, "fc_dims": 16},
                    "roi_sampler": {"num_sampled_rois": 16},
                    "decoder": {"fpn": {"num_filters": 8}} if model.decoder.type == "fpn" else {},
                    **({"mask_head": small} if model.include_mask else {}),
                },
            },
            "runtime": {"distribution_strategy": "one_device", "enable_xla": False},
        }
    )
    images, labels = batch(2)
    images = ops.pad(images, ((0, 0), (0, 64), (0, 64), (0, 0)))
    trainer = trainer_for(config, (images, labels))
    logs = trainer.train(1)
    assert np.isfinite(logs["training_loss"]) and logs["frcnn_cls_loss"] > 0
    assert (logs["mask_loss"] > 0) == model.include_mask


@pytest.fixture
def coco(tmp_path):
    """Three images with a COCO file, whose masks are run-lengths."""
    random = np.random.RandomState(0)
    images, annotations = [], []
    (tmp_path / "images").mkdir()
    for number in range(3):
        image, boxes, masks = scene(random)
        Image.fromarray(image).save(tmp_path / "images" / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png", "height": SIZE, "width": SIZE})
        for category, (box, mask) in enumerate(zip(boxes.tolist(), masks, strict=True), start=1):
            rle = coco_masks.encode(mask[None])[0]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": category,
                    "bbox": [box[1], box[0], box[3] - box[1], box[2] - box[0]],
                    "area": int(mask.sum()),
                    "iscrowd": 0,
                    "segmentation": {**rle, "counts": rle["counts"].decode()},
                }
            )
    categories = [{"id": 1, "name": "red"}, {"id": 2, "name": "blue"}]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (tmp_path / "data.json").write_text(json.dumps(content))
    return str(tmp_path / "data.json")


def test_from_files_to_average_precision_on_tensorflow(coco, tmp_path, caplog):
    data = {"input_path": coco, "file_type": "coco", "global_batch_size": 2, "dtype": "float32"}
    config = experiment(
        train_data={
            **data,
            "shuffle_buffer_size": 3,
            "parser": {"aug_rand_hflip": True, "mask_crop_size": SIDE},
        },
        validation_data={
            **data,
            "drop_remainder": False,
            "parser": {"mask_crop_size": SIDE},
        },
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
    task = maskrcnn.MaskRCNNTask(config.task, logging_dir=str(tmp_path / "run"))
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
    expected = {"AP", "mask_AP", "mask_AP50", "mask_AP50/red", "mask_AP/blue", "validation_loss"}
    assert expected <= set(logs)
    assert "Average precision by class" in caplog.text
    # Another start finds the names in the folder of the run.
    again = maskrcnn.MaskRCNNTask(config.task, str(tmp_path / "run"))
    assert again.class_names == ("red", "blue")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_on_tensorflow(dtype):
    config = experiment()
    config.override({"runtime": {"mixed_precision_dtype": dtype}})
    keras.mixed_precision.set_dtype_policy(f"mixed_{dtype}")
    try:
        trainer = trainer_for(config, batch())
        first = trainer.train(1)
        logs = trainer.train(39)
        found = trainer.evaluate()
    finally:
        keras.mixed_precision.set_dtype_policy("float32")
    assert logs["training_loss"] < first["training_loss"] and found["AP50"] > 0.2


def test_on_jax():
    run_under_engine("jax", __file__, select="not on_tensorflow")
