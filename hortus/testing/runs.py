"""Folders of runs as a training leaves them, with tiny models of random weights."""

import json
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from hortus import engine
from hortus.core import (
    base_trainer,
    checkpoints,
    exp_factory,
    run_record,
    task_factory,
    train_utils,
)
from hortus.core import config_definitions as cfg
from hortus.core.run_folder import RunFolder
from hortus.vision import registry_imports
from hortus.vision.data import shapes

RESNET = {"type": "resnet", "resnet": {"model_id": 10, "depth_multiplier": 0.25}}
CLASSIFICATION = {
    "model": {"num_classes": 4, "input_size": [32, 32, 3], "backbone": RESNET},
}
DETECTION = {
    "model": {
        "num_classes": 5,
        "input_size": [64, 64, 3],
        "min_level": 3,
        "max_level": 4,
        "backbone": RESNET,
        "decoder": {"type": "fpn", "fpn": {"num_filters": 16}},
        "head": {"num_convs": 1, "num_filters": 16},
        "detection_generator": {"max_num_detections": 10, "pre_nms_score_threshold": 0.0},
    },
}
INSTANCES = {
    "model": {
        "num_classes": 5,
        "input_size": [64, 64, 3],
        "min_level": 3,
        "max_level": 4,
        "backbone": RESNET,
        "decoder": {"type": "fpn", "fpn": {"num_filters": 16}},
        "rpn_head": {"num_filters": 16},
        "detection_head": {"num_convs": 0, "fc_dims": 16},
        "mask_head": {"num_convs": 1, "num_filters": 16},
        "roi_generator": {"test_pre_nms_top_k": 50, "test_num_proposals": 20},
        "detection_generator": {"max_num_detections": 10, "pre_nms_score_threshold": 0.0},
    },
    "init_checkpoint": None,
    "annotation_file": None,
}
SEGMENTATION = {
    "model": {
        "num_classes": 5,
        "input_size": [64, 64, 3],
        "backbone": RESNET,
        "decoder": {"type": "fpn", "fpn": {"num_filters": 16}},
        "min_level": 3,
        "max_level": 5,
        "head": {"num_convs": 1, "num_filters": 16, "feature_fusion": None, "level": 3},
    },
}
EXPERIMENTS = {
    "classification": ("image_classification", CLASSIFICATION, shapes.CLASSES),
    "detection": ("retinanet", DETECTION, shapes.CLASSES),
    "instances": ("maskrcnn_resnetfpn_coco", INSTANCES, shapes.CLASSES),
    "segmentation": ("semantic_segmentation", SEGMENTATION, ("background", *shapes.CLASSES)),
}


def make_run(folder: pathlib.Path, kind: str, overrides: Any = None, ema: bool = False) -> Any:
    """Writes the folder of a run at step 7; returns its config and its model."""
    experiment, settings, names = EXPERIMENTS[kind]
    params = exp_factory.get_exp_config(experiment)
    params.override({"task": settings})
    optimizer: dict[str, Any] = {
        "optimizer": {"type": "sgd"},
        "learning_rate": {"type": "constant"},
    }
    if ema:
        optimizer["ema"] = {"average_decay": 0.9}
    params.override({"trainer": {"optimizer_config": optimizer, "train_steps": 10}})
    params.override(overrides or {})
    return params, write_run(folder, params, names)


def write_run(folder: pathlib.Path, params: cfg.ExperimentConfig, names: Sequence[str]) -> Any:
    """Writes the folder of a run of this config at step 7, with class names; returns its model."""
    registry_imports.load_tasks()
    task = task_factory.get_task(params.task, logging_dir=str(folder))
    model = task.build_model()
    rng = np.random.default_rng(0)
    for variable in model.weights:  # initial heads and norms tell little apart
        kernel = len(variable.shape) > 1
        scale = 0.3 / np.sqrt(np.prod(variable.shape[:-1])) if kernel else 0.1
        noise = rng.normal(0, scale, variable.shape).astype("float32")
        variable.assign(variable + (np.abs(noise) if "variance" in variable.path else noise))
    optimizer = task.create_optimizer(params.trainer.optimizer_config, params.runtime)
    average = base_trainer.average_of(optimizer)
    if average is not None:
        average.shadow_copy(model)
    optimizer.build(model.trainable_variables)
    items = {"model": model, "optimizer": optimizer}
    files = RunFolder(folder)
    checkpoints.Checkpoint(**items).save(files.checkpoint(7), step=7)
    train_utils.serialize_config(params, folder)
    run_record.write(folder, params, engine.name())
    pathlib.Path(files.class_names).write_text(json.dumps(names))
    return model


def make_classifier(folder: pathlib.Path, pictures: pathlib.Path, **options: Any) -> None:
    """A run of classification, measured on what `shapes.write_folders` has written."""
    data = {"input_path": str(pictures / "val"), "file_type": "folder"}
    make_run(folder, "classification", _validation(data), **options)


def make_detector(folder: pathlib.Path, scenes: pathlib.Path, **options: Any) -> None:
    """A run of detection, measured on what `shapes.write_scenes` has written."""
    data = {"input_path": str(scenes / "val.json"), "image_dir": str(scenes / "images")}
    make_run(folder, "detection", _validation({**data, "file_type": "coco"}), **options)


def make_mask_detector(folder: pathlib.Path, scenes: pathlib.Path, **options: Any) -> None:
    """A run of detection with masks, measured on what `shapes.write_scenes` has written."""
    data = {"input_path": str(scenes / "val.json"), "image_dir": str(scenes / "images")}
    overrides = _validation({**data, "file_type": "coco", "dtype": "float32"})
    make_run(folder, "instances", overrides, **options)


def make_segmenter(folder: pathlib.Path, scenes: pathlib.Path, **options: Any) -> None:
    """A run of segmentation, measured on what `shapes.write_scenes` has written."""
    data = {"input_path": str(scenes / "images" / "val"), "file_type": "masks"}
    make_run(folder, "segmentation", _validation(data), **options)


def _validation(data: dict[str, Any]) -> dict[str, Any]:
    data = {**data, "global_batch_size": 4, "drop_remainder": False}
    return {"task": {"validation_data": data}}
