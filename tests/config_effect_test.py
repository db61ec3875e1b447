"""No field of a config is without effect and silent about it.

Tiny experiments of all tasks run while every read of a config's field is noted, if it is the
library that reads and not the config itself. What no run reads is read elsewhere, which a table
tells: that module has to read it indeed.
"""

import ast
import contextlib
import dataclasses
import importlib
import pathlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import keras
import pytest

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory
from hortus.testing import runs
from hortus.vision import train
from hortus.vision.configs import backbones, common, retinanet
from hortus.vision.data import shapes
from hortus.vision.dataloaders.augment import factory as augment_factory
from hortus.vision.modeling.backbones import factory as backbone_factory
from hortus.vision.modeling.decoders import factory as decoder_factory

MODULES = [
    "hortus.core.config_definitions",
    "hortus.vision.configs.backbones",
    "hortus.vision.configs.common",
    "hortus.vision.configs.decoders",
    "hortus.vision.configs.detection",
    "hortus.vision.configs.image_classification",
    "hortus.vision.configs.retinanet",
    "hortus.vision.configs.semantic_segmentation",
]
NO_READERS = (
    "hortus.hyperparams",
    "hortus.vision.configs",
    "hortus.vision.experiments",
    "hortus.core.config_definitions",
    "hortus.core.exp_",
    "hortus.core.run_",  # keep a record of all values
    "hortus.core.train_utils",
)
"""Modules that handle configs whatever is in them."""

Read = set[tuple[type, str]]

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@contextlib.contextmanager
def noting_reads() -> Iterator[Read]:
    """Notes (class, field) whenever the library reads a field, or takes all of them at once."""
    found: Read = set()

    def read(self: Any, name: str) -> Any:
        if not name.startswith("_"):
            reader = sys._getframe(1).f_globals.get("__name__", "")
            if reader.startswith("hortus.") and not reader.startswith(NO_READERS):
                fields = type(self).__dict__.get("_field_specs", {})
                taken = fields if name == "as_dict" else {name} & fields.keys()
                found.update((type(self), field) for field in taken)
        return object.__getattribute__(self, name)

    hyperparams.Config.__getattribute__ = read  # type: ignore[method-assign]
    try:
        yield found
    finally:
        del hyperparams.Config.__getattribute__  # type: ignore[misc]


def experiment(kind: str, data: Any) -> cfg.ExperimentConfig:
    """A tiny experiment that trains one step, with every option that goes together."""
    name, settings, _ = runs.EXPERIMENTS[kind]
    config = exp_factory.get_exp_config(name)
    shared = {"dtype": "float32", "global_batch_size": 2, "shuffle_buffer_size": 4}
    steps = {"train_steps": 1, "validation_steps": 1, "sanity_validation_steps": 0}
    optimizer = {"optimizer": {"type": "sgd"}, "learning_rate": {"type": "constant"}}
    task = {"train_data": {**data("train"), **shared}, "validation_data": {**data("val"), **shared}}
    config.override({"task": settings})
    config.override({"task": task, "runtime": {"run_eagerly": True}})
    config.override({"trainer": {**steps, "optimizer_config": optimizer}})
    return config


@pytest.fixture(scope="module")
def read(tmp_path_factory) -> Read:
    """All fields that were read while everything was built and run."""
    folder = tmp_path_factory.mktemp("effect")
    shapes.write_folders(folder / "pictures", num_train=1, num_val=1, size=32)
    shapes.write_scenes(folder / "scenes", num_train=2, num_val=2, size=64)
    scenes = folder / "scenes"
    augmented = {
        "aug_type": {"type": "randaug"},
        "random_erasing": {},
        "mixup_and_cutmix": {},
    }
    with noting_reads() as found, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = experiment(
            "classification",
            lambda split: {"input_path": str(folder / "pictures" / split), "file_type": "folder"},
        )
        classifier.override({"task": {"train_data": augmented, "losses": {"soft_labels": True}}})
        detector = experiment(
            "detection",
            lambda split: {
                "input_path": str(scenes / f"{split}.json"),
                "image_dir": str(scenes / "images"),
                "file_type": "coco",
            },
        )
        crops = {"aug_type": {"type": "ssd_random_crop"}, "aug_rand_jpeg": {}}
        detector.override({"task": {"train_data": {"parser": crops}}})
        segmenter = experiment(
            "segmentation",
            lambda split: {
                "input_path": str(scenes / "images" / split),
                "file_type": "masks",
                "output_size": [64, 64],
            },
        )
        for number, config in enumerate((classifier, detector, segmenter)):
            train.run(config, "train_and_eval", folder / str(number))
        _build_parts()
    return found


def _build_parts() -> None:
    """Builds what none of the experiments has."""
    smallest = {
        "dilated_resnet": {"model_id": 50},
        "resnet_unet": {
            "model_id": 10,
            "upsample_repeats": [1],
            "upsample_filters": [8],
            "upsample_kernel_sizes": [3],
        },
        "revnet": {"model_id": 38},
        "efficientnet": {},
        "spinenet": {"model_id": "49S"},
        "spinenet_mobile": {"model_id": "49XS"},
        "mobilenet": {"model_id": "MobileNetV3Small"},
        "mobiledet": {},
        "vit": {"model_name": "vit-ti16"},
    }
    for kind, settings in smallest.items():
        config = backbones.Backbone({"type": kind, kind: settings})
        specs = keras.layers.InputSpec(shape=[None, 128, 128, 3])
        backbone_factory.build_backbone(specs, config, common.NormActivation())
    features = {str(level): [None, 2 ** (7 - level), 2 ** (7 - level), 8] for level in range(3, 6)}
    for kind in ("nasfpn", "aspp"):
        decoder = {"type": kind, kind: {"num_filters": 8}}
        model = retinanet.RetinaNet({"decoder": decoder, "min_level": 3, "max_level": 7})
        decoder_factory.build_decoder(features, model)
    augment_factory.build_image_augmentation(common.Augmentation({"type": "autoaug"}))


SERVICE = "hortus.vision.dataloaders.service"
TFDS = "hortus.vision.dataloaders.sources.tfds_records"
RECORDS = "hortus.vision.dataloaders.detection.decoder"
MOBILE = "hortus.vision.modeling.factory"
BOXES = "hortus.vision.serving.services.detection"
ELSEWHERE = {
    "DataConfig.tfds_split": TFDS,
    "DataConfig.tfds_data_dir": TFDS,
    "DataConfig.tfds_as_supervised": TFDS,
    "DataConfig.tfds_skip_decoding_feature": TFDS,
    "DataConfig.cycle_length": "hortus.vision.dataloaders.sources.factory",
    "DataConfig.block_length": "hortus.vision.dataloaders.sources.factory",
    "DataConfig.deterministic": "hortus.vision.dataloaders.input_reader",
    "DataConfig.weights": "hortus.vision.dataloaders.input_reader",
    "DataConfig.tf_data_service_address": SERVICE,
    "DataConfig.tf_data_service_job_name": SERVICE,
    "DataConfig.enable_shared_tf_data_service_between_parallel_trainers": SERVICE,
    "DataConfig.apply_tf_data_service_before_batching": SERVICE,
    "DataConfig.trainer_id": SERVICE,
    "DataConfig.decoder": "hortus.vision.dataloaders.detection.reader",
    "DataConfig.allow_paths_outside": "hortus.vision.dataloaders.segmentation.reader",
    "DataConfig.annotation_file": "hortus.vision.dataloaders.segmentation.reader",
    "DataConfig.groundtruth_padded_size": "hortus.vision.dataloaders.segmentation.reader",
    "RuntimeConfig.engine": "hortus.core.launch",
    "RuntimeConfig.loss_scale": "hortus.core.base_task",
    "EarlyStoppingConfig.metric": "hortus.core.train_lib",
    "EarlyStoppingConfig.metric_comp": "hortus.core.train_lib",
    "EarlyStoppingConfig.min_delta": "hortus.core.train_lib",
    "TrainerConfig.continuous_eval_timeout": "hortus.core.train_lib",
    "TrainerConfig.best_checkpoint_eval_metric": "hortus.core.train_lib",
    "TrainerConfig.best_checkpoint_metric_comp": "hortus.core.train_lib",
    "TrainerConfig.max_time": "hortus.core.config_definitions",  # `max_seconds`
    "TrainerConfig.allow_subdirs_outside": "hortus.core.config_definitions",  # `check`
    "DifferentialPrivacyConfig.clipping_norm": "hortus.core.base_task",
    "DifferentialPrivacyConfig.noise_multiplier": "hortus.core.base_task",
    "init_checkpoint_averages": "hortus.core.base_task",
    "init_checkpoint_modules": "hortus.core.base_task",
    "TfExampleDecoder.regenerate_source_id": RECORDS,
    "TfExampleDecoder.mask_binarize_threshold": RECORDS,
    "TfExampleDecoder.attribute_names": RECORDS,
    "TfExampleDecoderLabelMap.regenerate_source_id": RECORDS,
    "TfExampleDecoderLabelMap.mask_binarize_threshold": RECORDS,
    "TfExampleDecoderLabelMap.label_map": RECORDS,
    "TFLitePostProcessingConfig.max_detections": MOBILE,
    "TFLitePostProcessingConfig.use_regular_nms": MOBILE,
    "TFLitePostProcessingConfig.nms_score_threshold": MOBILE,
    "TFLitePostProcessingConfig.nms_iou_threshold": MOBILE,
    "TFLitePostProcessingConfig.y_scale": MOBILE,
    "TFLitePostProcessingConfig.x_scale": MOBILE,
    "TFLitePostProcessingConfig.w_scale": MOBILE,
    "TFLitePostProcessingConfig.h_scale": MOBILE,
    "DetectionGenerator.tflite_post_processing": MOBILE,
    "ImageClassificationModel.output_softmax": "hortus.vision.serving.services.classification",
    "Losses.soft_labels": "hortus.vision.tasks.image_classification",
    "Losses.mask_scoring_weight": "hortus.vision.losses.segmentation",
    "ExportConfig.output_normalized_coordinates": BOXES,
    "ExportConfig.cast_num_detections_to_float": BOXES,
    "ExportConfig.cast_detection_classes_to_float": BOXES,
    "ExportConfig.output_intermediate_features": BOXES,
    "ExportConfig.rescale_output": "hortus.vision.serving.services.segmentation",
    "RetinaNetTask.export_config": BOXES,
    "SemanticSegmentationTask.export_config": "hortus.vision.serving.services.segmentation",
}
"""The module that reads what the runs above do not, as it takes other data, modes or exports.

A field that tasks inherit stands without its class.
"""
LOADED_ONLY = {
    "PseudoLabelDataConfig": "for readers of users; see `dataloaders.combination_reader`"
}


def unread(found: Read, modules: list[str]) -> list[str]:
    """Fields that have an effect by their own account, and that nothing has read."""
    silent = []
    for name in modules:
        for cls in vars(importlib.import_module(name)).values():
            is_config = isinstance(cls, type) and issubclass(cls, hyperparams.Config)
            if not is_config or cls.__module__ != name or issubclass(cls, hyperparams.OneOfConfig):
                continue
            if cls.__name__ in LOADED_ONLY:
                continue
            silent += [
                f"{cls.__name__}.{field}"
                for field, spec in cls._fields().items()
                if not spec.inert and not any((each, field) in found for each in _family(cls))
            ]
    return silent


def _family(cls: type) -> set[type]:
    """A class, and those that inherit its fields: a read of theirs is a read of its own."""
    return {cls, *(each for child in cls.__subclasses__() for each in _family(child))}


def reads(module: str, field: str) -> bool:
    """Whether the code of a module reads an attribute of this name, or names it in a text."""
    path = pathlib.Path(importlib.import_module(module).__file__ or "")
    return any(
        (isinstance(node, ast.Attribute) and node.attr == field)
        or (isinstance(node, ast.Constant) and node.value == field)
        for node in ast.walk(ast.parse(path.read_text()))
    )


def place_of(name: str) -> str | None:
    return ELSEWHERE.get(name) or ELSEWHERE.get(name.partition(".")[2])


def test_each_field_is_read_or_marked_as_inert(read):
    assert (cfg.TrainerConfig, "steps_per_loop") in read  # reads are noted at all
    silent = [name for name in unread(read, MODULES) if place_of(name) is None]
    assert silent == []


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_runs_do_not_read_is_read_where_the_table_says(name):
    assert reads(ELSEWHERE[name], name.rpartition(".")[2])


def test_a_field_that_nothing_heeds_is_found(read, monkeypatch):
    @dataclasses.dataclass
    class Unheeded(hyperparams.Config):
        size: int = 1  # a common name, which much of the code reads of other configs
        level: int = 2

    monkeypatch.setattr(common, "Unheeded", Unheeded, raising=False)
    Unheeded.__module__ = common.__name__
    found = unread(read, [common.__name__])
    assert {"Unheeded.size", "Unheeded.level"} <= set(found)
